"""From reads of any size to whole frames, sans I/O: four bytes of length, then that many bytes.

Small frames are copied out of a scratch buffer that all connections of a loop share. A frame that is larger than what
was read gets a buffer of its own, into which the socket then reads directly. This buffer grows with the bytes received,
not with the length announced: a peer cannot make us allocate more than it sends. The owner learns the length once the
first buffer is full, so that it can charge the whole frame, or stop reading until there is room for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from quorumlog.wire.format.cursor import Foreign, Malformed
from quorumlog.wire.format.frame_writer import LENGTH_BYTES

SCRATCH_BYTES = 64 * 1024
FIRST_BYTES = 64 * 1024  # first size of a large frame's buffer; it then grows fourfold,
_GROWTH_BYTES = 4 * 1024 * 1024  # but at most by so much at once
_ZEROS = memoryview(bytes(_GROWTH_BYTES))
_LENGTH = struct.Struct(">i")

TLS_HELLO = b"\x16\x03"
_LOOKS_LIKE = (
    (TLS_HELLO, "a TLS hello"),
    (b"\x15\x03", "a TLS alert; this client speaks without TLS"),
    (b"HTTP", "an HTTP response"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"PRI ", "HTTP/2 or gRPC; this listener speaks Kafka's protocol"),
    (b"SSH-", "SSH"),
)


class FrameReader:
    """Read into `buffer`, then call `received`; whole frames go to `deliver`, without their length.

    begun: called with the length of each frame that did not arrive in one read, before it gets more than its first
    buffer. So a peer that announces large frames and sends nothing takes nothing from the others.
    max_frame_bytes: may be changed; it applies to frames that begin afterwards.
    scratch: shared by all readers of one loop; it is not in use between `received` and the next `buffer`.
    trusted: a large frame gets its whole buffer at once. For responses from nodes that this process has asked.
    first_bytes: the first size of a large frame's buffer; like `max_frame_bytes`.
    """

    __slots__ = (
        "_begun",
        "_deliver",
        "_filled",
        "_frame",
        "_head",
        "_is_announced",
        "_scratch",
        "_size",
        "first_bytes",
        "max_frame_bytes",
    )

    def __init__(
        self,
        max_frame_bytes: int,
        scratch: memoryview,
        deliver: Callable[[memoryview], None],
        begun: Callable[[int], None] = lambda _size: None,
        *,
        trusted: bool = False,
    ) -> None:
        self.first_bytes = max_frame_bytes if trusted else FIRST_BYTES
        self.max_frame_bytes = max_frame_bytes
        self._scratch, self._deliver, self._begun = scratch, deliver, begun
        self._head = b""  # the first one to three bytes of a length
        self._frame: bytearray | None = None  # being filled
        self._filled = self._size = 0
        self._is_announced = False  # the frame is larger than its first buffer, which is not full yet

    @property
    def in_frame(self) -> bool:
        """A part of a frame was received, but not all of it."""
        return bool(self._head) or self._frame is not None

    @property
    def missing_bytes(self) -> int:
        """Of a frame that has a buffer of its own: what is still to come. 0: nobody knows."""
        return 0 if self._frame is None else self._size - self._filled

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
        """Raises Malformed for a length that is not allowed; the connection is to be closed then."""
        if self._frame is None:
            self._cut(bytes(self._head) + bytes(self._scratch[:count]) if self._head else self._scratch[:count])
            return
        self._filled += count
        if self._filled == self._size:
            frame, self._frame = self._frame, None
            self._deliver(memoryview(frame))
        elif self._filled == len(self._frame) and self._is_announced:
            self._is_announced = False
            self._begun(self._size)

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
        frame = bytearray(min(size, max(self.first_bytes, len(start))))
        frame[: len(start)] = start
        self._frame, self._filled, self._size = frame, len(start), size
        self._is_announced = len(start) < len(frame) < size
        if not self._is_announced:
            self._begun(size)

    def _length(self, four: memoryview) -> int:
        size: int = _LENGTH.unpack(four)[0]
        if 0 < size <= self.max_frame_bytes:
            return size
        if (foreign := looks_like(bytes(four))) is not None:
            error = Foreign(foreign)
            error.is_tls = four[:2] == TLS_HELLO
            raise error
        raise Malformed(f"a frame of {size} bytes; 1 to {self.max_frame_bytes} are allowed")


def looks_like(start: bytes) -> str | None:
    """The protocol that the first four bytes belong to; None: unknown."""
    return next((f"it looks like {what}" for first, what in _LOOKS_LIKE if start.startswith(first)), None)
