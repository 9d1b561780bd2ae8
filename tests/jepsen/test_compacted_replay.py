"""Logs of coordinators as the cleaner may leave them, and what replays them."""

from __future__ import annotations

import random

import pytest

from jepsen.sim.invariants.coordinators.compacted_replay import Replayed, compacted, read, replay
from quorumlog.records import lay_out_rows
from quorumlog.records.control import EndTxnMarker, encode_control
from quorumlog.records.format.batch import TRANSACTIONAL
from tests.broker.coordinator.group_world import GroupWorld
from tests.broker.coordinator.group_world import replay as replay_all

FOO = ("foo", 0)


def records(*keys: str) -> list[Replayed]:
    """A letter is a key; in capitals, of a transaction."""
    return [Replayed(at, key.lower().encode(), b"", (7,) if key.isupper() else ()) for at, key in enumerate(keys)]


@pytest.mark.parametrize("seed", range(20))
def test_the_newest_record_of_a_key_stays(seed: int) -> None:
    kept = list(compacted(records(*"abacbad"), random.Random(seed)))
    offsets = [one.offset for one in kept]
    assert offsets == sorted(offsets) and {3, 4, 5, 6} <= set(offsets)


def test_some_go() -> None:
    counts = {len(list(compacted(records(*"aaaaab"), random.Random(seed)))) for seed in range(20)}
    assert min(counts) == 2 < max(counts)


def test_what_a_transaction_may_replace_stays() -> None:
    assert all(len(list(compacted(records(*"aaAa"), random.Random(seed)))) == 4 for seed in range(9))


def test_batches_are_read_as_a_coordinator_reads_them() -> None:
    plain = lay_out_rows([(0, b"k", b"v", ()), (0, b"k", None, ())])
    staged = lay_out_rows([(0, b"t", b"w", ())])
    staged.attributes |= TRANSACTIONAL
    data = bytes(plain.seal(-1, -1, -1)) + bytes(staged.seal(7, 0, -1))
    found = [(one.key, one.value, one.producer, one.marker) for one in read(data)]
    assert found == [(b"k", b"v", (), None), (b"k", None, (), None), (b"t", b"w", (7,), None)]


def test_a_core_that_loads_less_ends_as_it_was() -> None:
    world = GroupWorld()
    for offset in range(5):
        assert world.commit_code({FOO: offset}) == 0
    world.stable(3)
    log = [
        Replayed(at, write.key, write.value, () if write.producer is None else (write.producer.producer_id,))
        for at, write in enumerate(world.log)
    ]
    whole, part = GroupWorld(), GroupWorld()
    replay_all(world.log, whole.shard)
    replay(part.shard, compacted(log, random.Random(1)))
    assert part.shard._offsets.get("g", FOO) == whole.shard._offsets.get("g", FOO)
    assert part.shard._values == whole.shard._values


def test_a_marker_ends_its_transaction() -> None:
    world = GroupWorld()
    assert world.commit_in_transaction({FOO: 3})
    (write,) = world.log
    marker = EndTxnMarker(True, 0)
    assert encode_control(marker)
    replay(
        other := GroupWorld().shard, [Replayed(0, write.key, write.value, (7,)), Replayed(1, b"", None, (7,), marker)]
    )
    found = other._offsets.get("g", FOO)
    assert found is not None and found.offset == 3
