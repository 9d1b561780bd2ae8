"""From reads of any size to whole frames, sans I/O: four bytes of length, then that many bytes.

Small frames are cut out of a scratch buffer that all connections of a loop share; a frame that does not fit into what
has been read gets a buffer of its own, into which the socket then reads directly. That buffer grows with what has
come, not with what was announced: a length costs its sender as much memory as it costs us.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from quorumlog.wire.malformed import Malformed
from quorumlog.wire.parts import LENGTH_BYTES

SCRATCH_BYTES = 64 * 1024
_FIRST_BYTES = 64 * 1024  # of a large frame's buffer; then four times as much, and
_GROWTH_BYTES = 4 * 1024 * 1024  # never more than so much at once
_ZEROS = memoryview(bytes(_GROWTH_BYTES))
_LENGTH = struct.Struct(">i")

_LOOKS_LIKE = (
    (b"\x16\x03", "a TLS hello; this listener is plaintext"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"PRI ", "HTTP/2 or gRPC; this listener speaks Kafka's protocol"),
    (b"SSH-", "an SSH client"),
)


class FrameReader:
    """`buffer` says where to read to, `received` how much came; whole frames go to `deliver`, without their length.

    scratch: shared by all readers of one loop; nothing of it is in use between `received` and the next `buffer`.
    trusted: a large frame gets its whole buffer at once. For answers of nodes that we have chosen to ask.
    """

    __slots__ = ("_deliver", "_filled", "_first_bytes", "_frame", "_head", "_max_frame_bytes", "_scratch", "_size")

    def __init__(
        self,
        max_frame_bytes: int,
        scratch: memoryview,
        deliver: Callable[[memoryview], None],
        *,
        trusted: bool = False,
    ) -> None:
        self._first_bytes = max_frame_bytes if trusted else _FIRST_BYTES
        self._max_frame_bytes, self._scratch, self._deliver = max_frame_bytes, scratch, deliver
        self._head = b""  # a length of which less than four bytes have come
        self._frame: bytearray | None = None  # being filled
        self._filled = self._size = 0

    @property
    def in_frame(self) -> bool:
        """Some of a frame has come, and not all."""
        return bool(self._head) or self._frame is not None

    def buffer(self) -> memoryview:
        """Where the next read goes; not empty."""
        frame = self._frame
        if frame is None:
            return self._scratch
        if self._filled == len(frame):
            more = min(3 * len(frame), _GROWTH_BYTES, self._size - len(frame))
            frame += _ZEROS[:more]
        return memoryview(frame)[self._filled :]

    def received(self, count: int) -> None:
        """Raises Malformed for a length that cannot be one; the connection is over then."""
        if self._frame is None:
            self._cut(bytes(self._head) + bytes(self._scratch[:count]) if self._head else self._scratch[:count])
            return
        self._filled += count
        if self._filled == self._size:
            frame, self._frame = self._frame, None
            self._deliver(memoryview(frame))

    def _cut(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        position, end = 0, len(view)
        while end - position >= LENGTH_BYTES:
            size = self._length(view[position : position + LENGTH_BYTES])
            position += LENGTH_BYTES
            if end - position < size:
                self._begin(size, view[position:])
                return
            self._deliver(memoryview(bytes(view[position : position + size])))
            position += size
        self._head = bytes(view[position:])

    def _begin(self, size: int, start: memoryview) -> None:
        self._head = b""
        frame = bytearray(min(size, max(self._first_bytes, len(start))))
        frame[: len(start)] = start
        self._frame, self._filled, self._size = frame, len(start), size

    def _length(self, four: memoryview) -> int:
        size: int = _LENGTH.unpack(four)[0]
        if 0 < size <= self._max_frame_bytes:
            return size
        raise Malformed(looks_like(bytes(four)) or f"a frame of {size} bytes; allowed are 1 to {self._max_frame_bytes}")


def looks_like(start: bytes) -> str | None:
    """What a stranger seems to speak, by the first four bytes; None: nothing known."""
    return next((f"it looks like {what}" for first, what in _LOOKS_LIKE if start.startswith(first)), None)
