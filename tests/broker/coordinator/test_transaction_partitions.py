"""AddPartitionsToTxn and AddOffsetsToTxn: what begins and extends a transaction, and what a leader is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import TransactionToExtend, TransactionTopic
from tests.broker.coordinator.transaction_world import FIRST_ID, WALL_MS, A, B, C, TransactionWorld
from tests.rules import rule

STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
WORKS, BUSY = E.NONE, E.CONCURRENT_TRANSACTIONS


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


def older(producer: tuple[int, int]) -> tuple[int, int]:
    return producer[0], producer[1] - 1


def newer(producer: tuple[int, int]) -> tuple[int, int]:
    return producer[0], producer[1] + 1


# --- who may, and when ---

WHEN = dict(zip(STATES, [WORKS, WORKS, BUSY, BUSY, WORKS, WORKS], strict=True))


@rule("group 6.6")
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", STATES)
def test_when_partitions_are_added(state: str, version: int) -> None:
    world = TransactionWorld(version=version)
    producer = world.bring_to(state)
    for number in (world.add(producer, B), world.add_offsets(producer)):
        assert world.code(number) == WHEN[state]
    added = {B, ("__consumer_offsets", 7)} if WHEN[state] == E.NONE else set()
    held = {A} if state in ("Ongoing", "PrepareCommit", "PrepareAbort") else set()
    assert world.shard._table.partitions("x") == added | held


@rule("group 6.6")
@pytest.mark.parametrize("state", STATES)
def test_who_adds_partitions(world: TransactionWorld, state: str) -> None:
    world.started()
    producer = world.bring_to(state)
    for add in (world.add, world.add_offsets):
        assert world.code(add((producer[0] + 1, producer[1]))) == E.INVALID_PRODUCER_ID_MAPPING
        assert world.code(add(older(producer))) == E.PRODUCER_FENCED
        assert world.code(add(newer(producer))) == E.PRODUCER_FENCED
        assert world.code(add(older(producer), takes_producer_fenced=False)) == E.INVALID_PRODUCER_EPOCH
        assert world.code(add(producer, transactional_id="unknown")) == E.INVALID_PRODUCER_ID_MAPPING
        assert world.code(add(producer, transactional_id="")) == E.INVALID_REQUEST
    assert world.code(world.add_offsets(producer, group_id="")) == E.INVALID_GROUP_ID
    assert world.state() == state


@rule("group 6.6")
def test_a_topic_that_does_not_exist_stops_the_others(world: TransactionWorld) -> None:
    producer = world.started()
    world.missing_topics = {"b"}
    number = world.add(producer, A, B, C)
    assert world.codes(number) == {A: 55, B: 55, C: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert world.state() == "Empty" and E.OPERATION_NOT_ATTEMPTED == 55


# --- what is written ---


@rule("group 6.7")
def test_what_is_in_already_is_not_written_again(world: TransactionWorld) -> None:
    producer = world.started()
    world.add(producer, A, B)
    records = len(world.log)
    assert world.codes(world.add(producer, B)) == {B: E.NONE}
    assert len(world.log) == records
    assert world.codes(world.add(producer, B, C)) == {B: E.NONE, C: E.NONE}
    assert len(world.log) == records + 1
    assert world.described().topics == (
        TransactionTopic(name="a", partitions=(0, 1)),
        TransactionTopic(name="b", partitions=(0,)),
    )


def test_a_transaction_begins_with_its_first_partition(world: TransactionWorld) -> None:
    producer = world.started()
    assert world.described().transaction_start_time_ms == -1
    world.pass_ms(1_000)
    world.add(producer, A)
    world.pass_ms(1_000)
    world.add(producer, B)
    assert world.described().transaction_start_time_ms == WALL_MS + 1_000
    ended = world.producer(world.end(producer))
    world.pass_ms(1_000)
    world.add(ended, A)
    assert world.described().transaction_start_time_ms == WALL_MS + 3_000
    assert world.described().topics == (TransactionTopic(name="a", partitions=(0,)),)


@pytest.mark.parametrize("topics", [(), (TransactionTopic(name="a"),)], ids=["no topic", "no partition of a topic"])
@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_a_transaction_begins_without_partitions_too(
    world: TransactionWorld, state: str, topics: tuple[TransactionTopic, ...]
) -> None:
    """As in Kafka: it can be extended, committed and aborted, and it times out. It has no marker."""
    producer = world.bring_to(state)
    request: dict[str, Any] = {"transactional_id": "x", "producer_id": producer[0], "topics": topics}
    for epoch in (producer[1] + 1, producer[1], producer[1]):
        world.call("add_partitions", TransactionToExtend(**request, producer_epoch=epoch))
        assert world.state() == (state if epoch != producer[1] else "Ongoing")
    assert world.described().topics == () and world.described().transaction_start_time_ms >= WALL_MS
    ended = world.end(producer)
    assert world.code(ended) == E.NONE and world.state() == "CompleteCommit"
    producer = world.producer(ended)
    world.call("add_partitions", TransactionToExtend(**request, producer_epoch=producer[1]))
    assert world.code(world.add(producer, B)) == E.NONE and world.shard._table.partitions("x") == {B}


def test_a_transaction_without_partitions_times_out() -> None:
    world = TransactionWorld()
    producer = world.started()
    topics = (TransactionTopic(name="a"),)
    request = TransactionToExtend(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], topics=topics
    )
    world.call("add_partitions", request)
    world.pass_ms(120_000)
    assert world.state() == "CompleteAbort"


def test_a_transaction_is_no_larger_than_a_record() -> None:
    world = TransactionWorld()
    world.largest_record_bytes = 200
    producer = world.started()
    assert world.code(world.add(producer, *[("t", index) for index in range(30)])) == E.NONE
    assert world.code(world.add(producer, *[("t", index) for index in range(30, 60)])) == E.UNKNOWN_SERVER_ERROR
    assert world.code(world.end(producer)) == E.NONE


@rule("group 6.6", "group 6.9")
def test_the_last_epoch_up_is_no_producers(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("state.table", "state.states", "init_producer", "end", "partitions"):
        monkeypatch.setattr(f"quorumlog_broker.coordinator.transactions.{module}.LAST_EPOCH", 0)
    world.version = 0
    producer = world.started()
    world.add(producer)
    world.init()
    assert world.described().producer_epoch == 1 and world.state() == "CompleteAbort"
    assert world.code(world.add((FIRST_ID, 1))) == E.PRODUCER_FENCED
    assert world.code(world.end((FIRST_ID, 1), committed=False)) == E.PRODUCER_FENCED


# --- a leader that asks only (KIP-890) ---

ABORTABLE = E.TRANSACTION_ABORTABLE
VERIFIED = dict(
    zip(STATES, [(ABORTABLE,) * 2, (WORKS, ABORTABLE), *[(BUSY,) * 2] * 2, *[(ABORTABLE,) * 2] * 2], strict=True)
)


@rule("group 6.8")
@pytest.mark.parametrize("state", STATES)
def test_what_a_leader_is_told(world: TransactionWorld, state: str) -> None:
    producer = world.bring_to(state)
    records = len(world.log)
    assert world.codes(world.verify(producer, A, B)) == dict(zip((A, B), VERIFIED[state], strict=True))
    assert world.code(world.verify(older(producer))) == E.INVALID_PRODUCER_EPOCH
    assert world.code(world.verify(newer(producer))) == E.INVALID_PRODUCER_EPOCH
    assert world.code(world.verify((producer[0] + 1, producer[1]))) == E.INVALID_PRODUCER_ID_MAPPING
    assert world.code(world.verify(producer, transactional_id="unknown")) == E.INVALID_PRODUCER_ID_MAPPING
    assert world.code(world.verify(producer, transactional_id="")) == E.INVALID_REQUEST
    assert len(world.log) == records


def test_a_leader_is_told_of_what_is_not_committed_once_it_is() -> None:
    world = TransactionWorld(autocommit=False)
    world.init()
    world.settle()
    producer = (FIRST_ID, 0)
    added, verified, other = world.add(producer, A), world.verify(producer, A), world.add(producer, B)
    assert not {added, verified} & set(world.answers)
    assert world.code(other) == E.CONCURRENT_TRANSACTIONS
    world.settle()
    assert (world.code(added), world.code(verified)) == (E.NONE, E.NONE)
    again = world.add(producer, B)
    assert world.shard.resigned() == [again]
    world.fail_over(keep=2)
    world.settle()
    assert world.codes(world.verify(producer, A, B)) == {A: E.NONE, B: E.TRANSACTION_ABORTABLE}
