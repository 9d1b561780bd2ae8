"""Bytes that need not be copied to become a field of a message.

A field whose schema comment says `buffer` holds one of these, one that says `pieces` also Pieces. Decoding from gRPC
gives `bytes`, from the lane a view of the frame. A kept `memoryview` keeps its whole frame in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

Buffer = bytes | bytearray | memoryview


class Pieces:
    """Bytes that lie in several places: stored batches, each a stamp and a view of the received bytes. Immutable.

    The lane sends them as they are; `whole` joins them into one buffer. Equal to any buffer of the same bytes.
    """

    __slots__ = ("_size_bytes", "buffers")

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers
        self._size_bytes = sum(map(len, buffers))

    def __len__(self) -> int:
        return self._size_bytes

    def __bytes__(self) -> bytes:
        return b"".join(self.buffers)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pieces):
            return bytes(self) == bytes(other)
        return bytes(self) == other if isinstance(other, Buffer) else NotImplemented

    def __hash__(self) -> int:
        return hash(bytes(self))

    def __repr__(self) -> str:
        return f"Pieces({self.buffers!r})"


def whole(data: Buffer | Pieces) -> Buffer:
    """In one buffer; copied only where it is in pieces."""
    return bytes(data) if isinstance(data, Pieces) else data
