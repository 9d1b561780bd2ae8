"""The offset map against a dict, and its bounds."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.cleaning.offset_map import NO_ROOM, NOT_FOUND, SLOT_BYTES, OffsetMap, memory_for
from tests.rules import rule

KEYS = st.binary(max_size=3)


@rule("storage 9.5", "log 5.7")
@given(st.lists(KEYS, max_size=60), st.integers(1, 30), st.binary(min_size=1, max_size=16))
def test_it_is_a_dict_until_it_is_full(keys: list[bytes], slots: int, hash_key: bytes) -> None:
    offsets, model = OffsetMap(slots * SLOT_BYTES, 0.9, hash_key), dict[bytes, int]()
    for offset, key in enumerate(keys):
        has_room = key in model or len(model) < offsets.capacity
        assert offsets.put(key, offset) == (model.get(key, NOT_FOUND) if has_room else NO_ROOM)
        if has_room:
            model[key] = offset
    assert len(offsets) == len(model)
    for key in {*keys, b"never"}:
        assert offsets.get(key) == model.get(key, NOT_FOUND)


@rule("log 5.7")
@pytest.mark.parametrize("slots", [1, 2, 3, 10, 1_000])
@pytest.mark.parametrize("load_factor", [0.01, 0.5, 0.9, 1.0])
def test_it_always_takes_a_key_and_keeps_a_free_slot(slots: int, load_factor: float) -> None:
    offsets = OffsetMap(slots * SLOT_BYTES, load_factor, b"k")
    assert 1 <= offsets.capacity < offsets.slots
    while offsets.put(b"%d" % len(offsets), len(offsets)) != NO_ROOM:
        pass
    assert len(offsets) == offsets.capacity and offsets.get(b"absent") == NOT_FOUND


@rule("storage 9.5")
def test_it_takes_24_bytes_a_key_and_nothing_else() -> None:
    tracemalloc.start()
    offsets = OffsetMap(240_000, 0.9, b"k")
    for number in range(offsets.capacity):
        offsets.put(b"key-%d" % number, number)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert offsets.capacity == 9_000 and held < 240_000 + 4_096


def test_another_hash_key_is_another_order() -> None:
    """Nobody who does not know the key of a round can prepare collisions."""
    words = []
    for hash_key in (b"a", b"b"):
        offsets = OffsetMap(100 * SLOT_BYTES, 0.9, hash_key)
        offsets.put(b"key", 7)
        words.append(bytes(offsets._words))
    assert words[0] != words[1]


def test_a_short_log_needs_a_small_map() -> None:
    assert memory_for(100, 1 << 27, 0.9) < 3_000
    assert memory_for(10**9, 1 << 27, 0.9) == 1 << 27
    for records in range(40):
        assert OffsetMap(memory_for(records, 1 << 27, 0.9), 0.9, b"k").capacity >= records
