"""Pass 1's memory: the newest offset of each key, 24 bytes a key, in one flat buffer (Kafka's `SkimpyOffsetMap`).

A slot is 16 bytes of the key's keyed hash and 8 bytes of its offset plus one; 0 marks an empty slot. Open addressing,
linear probing, no deletion. Keys themselves are not kept: two keys of one hash would be taken for one. With 128 bits
that does not happen by accident, and the hash has a key that is made for each round, so that nobody can prepare it.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

from quorumlog.ids import Offset

SLOT_BYTES = 24
NOT_FOUND: Offset = -1
NO_ROOM: Offset = -2

_HASH = Struct("qq")
_HASH_BYTES = _HASH.size


class OffsetMap:
    """capacity: how many keys it takes. slots: of the buffer; the rest keeps probing short.

    A memory of `SLOT_BYTES * slots`, allocated at once.
    """

    def __init__(self, memory_bytes: int, load_factor: float, hash_key: bytes) -> None:
        """hash_key: random, at most 64 bytes."""
        self.slots, self.capacity = dimensions(memory_bytes, load_factor)
        self._words = memoryview(bytearray(SLOT_BYTES * self.slots)).cast("q")
        self._hash_key = hash_key
        self._size = 0

    def __len__(self) -> int:
        """How many keys it holds."""
        return self._size

    def put(self, key: bytes | bytearray, offset: Offset) -> Offset:
        """Note that `key` was written at `offset`, which is after any noted before. Returns where it was written
        before, NOT_FOUND if it is new, NO_ROOM if it is new and the map is full."""
        first, second = _HASH.unpack(blake2b(key, digest_size=_HASH_BYTES, key=self._hash_key).digest())
        words = self._words
        end = len(words)
        at = first % self.slots * 3
        while words[at + 2]:
            if words[at] == first and words[at + 1] == second:
                before: Offset = words[at + 2] - 1
                words[at + 2] = offset + 1
                return before
            at += 3
            if at == end:
                at = 0
        if self._size >= self.capacity:
            return NO_ROOM
        words[at], words[at + 1], words[at + 2] = first, second, offset + 1
        self._size += 1
        return NOT_FOUND

    def get(self, key: bytes | bytearray) -> Offset:
        """The newest offset of a key; NOT_FOUND."""
        first, second = _HASH.unpack(blake2b(key, digest_size=_HASH_BYTES, key=self._hash_key).digest())
        words = self._words
        end = len(words)
        at = first % self.slots * 3
        while words[at + 2]:
            if words[at] == first and words[at + 1] == second:
                found: Offset = words[at + 2] - 1
                return found
            at += 3
            if at == end:
                at = 0
        return NOT_FOUND


def dimensions(memory_bytes: int, load_factor: float) -> tuple[int, int]:
    """(slots, keys that they take). A free slot ends every search."""
    slots = max(2, memory_bytes // SLOT_BYTES)
    return slots, max(1, min(int(slots * load_factor), slots - 1))


def memory_for(records: int, limit_bytes: int, load_factor: float) -> int:
    """Bytes of a map for at most so many keys, within a limit: a short log needs no map of 128 MiB."""
    return min(limit_bytes, SLOT_BYTES * (int(records / load_factor) + 2))
