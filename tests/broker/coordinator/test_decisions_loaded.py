"""What a coordinator does with the decisions that it finds when it loads: it makes nothing of one before its turn."""

from __future__ import annotations

from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.coordinator.transactions.state.table import Partition
from tests.broker.coordinator.transaction_world import A, B, TransactionWorld, replay


def loaded(count: int, *partitions: Partition) -> TransactionShard:
    """A core that has loaded so many decided transactions, x0 and so on. Nobody has taken any of them yet."""
    world = TransactionWorld(automark=False)
    producers = {name: world.started(transactional_id=name) for name in (f"x{number}" for number in range(count))}
    for name, producer in producers.items():
        if partitions:
            world.add(producer, *partitions, transactional_id=name)
    world.autocommit = False
    for name, producer in producers.items():
        world.end(producer, transactional_id=name, committed=bool(partitions))
    shard = world._new_shard()
    replay(world.log, shard)
    shard.loaded(len(world.log))
    assert not shard.has_decided, "it may yet be undone"
    shard.committed(len(world.log))
    return shard


def test_decisions_that_were_loaded_are_taken_some_at_a_time_in_the_order_of_the_ids() -> None:
    shard = loaded(10, A, B)
    taken: list[str] = []
    while shard.has_decided:
        found = shard.take_decided(4)
        assert len(found) <= 4 and all(one.partitions == (A, B) for one in found)
        taken += [one.transactional_id for one in found]
    assert taken == [f"x{number}" for number in range(10)]
    assert shard.take_decided(4) == [] and shard.take() == ([], [])


def test_what_is_missing_is_told_at_any_time() -> None:
    shard = loaded(1, A, B)
    before = shard.unconfirmed("x0")
    assert before is not None and before.partitions == (A, B)
    shard.marker_written("x0", before.ending.producer_epoch, A)
    assert shard.unconfirmed("x0") == before._replace(partitions=(B,))
    shard.marker_written("x0", before.ending.producer_epoch, B)
    assert shard.unconfirmed("x0") is None and shard.unconfirmed("other") is None


def test_a_decision_without_partitions_is_completed_when_it_is_taken() -> None:
    shard = loaded(5)
    assert shard.take_decided(2) == [] and shard.has_decided
    assert len(shard.take()[0]) == 2, "in slices, too"
    assert shard.take_decided(10) == [] and not shard.has_decided
    assert len(shard.take()[0]) == 3
