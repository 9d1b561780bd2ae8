"""Writing one frame as a list of buffers. Large byte fields are the caller's own buffers, not copies."""

from __future__ import annotations

import struct

from quorumlog.messages.buffer import Buffer, Pieces

COPY_BELOW_BYTES = 4_096  # copying less than this costs less than one more buffer in the list
LENGTH_BYTES = 4
_LENGTH = struct.Struct(">i")


class FrameWriter:
    """Write to `tail`; `attach` adds a buffer after what was written; `frame` returns the whole."""

    __slots__ = ("_done", "_done_bytes", "tail")

    def __init__(self) -> None:
        self._done: list[Buffer] = []
        self._done_bytes = 0
        self.tail = bytearray(LENGTH_BYTES)  # the first four bytes become the frame's length

    def attach(self, data: Buffer | Pieces) -> None:
        if isinstance(data, Pieces):
            for buffer in data.buffers:
                self._attach(buffer)
        else:
            self._attach(data)

    def _attach(self, data: Buffer) -> None:
        if len(data) < COPY_BELOW_BYTES:
            self.tail += data
            return
        self._done += (self.tail, data)
        self._done_bytes += len(self.tail) + len(data)
        self.tail = bytearray()

    def frame(self) -> list[Buffer]:
        """The whole frame, with its length set. Nothing may be written afterwards."""
        parts = [*self._done, self.tail] if self.tail else self._done
        first = parts[0]
        assert isinstance(first, bytearray)
        _LENGTH.pack_into(first, 0, self._done_bytes + len(self.tail) - LENGTH_BYTES)
        return parts


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
