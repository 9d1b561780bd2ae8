"""Transactions of the asyncio producer against brokers in memory, whose coordinator is the real core."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest
import virtual_time
from fake_cluster import TestClock
from transactional_cluster import TransactionalCluster

from quorumlog.client.errors import ConfigError, RecordTooLarge
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.producer import AsyncProducer
from quorumlog.client.transactions.driver import BegunTransaction
from quorumlog.client.transactions.errors import (
    FatalTransactionError,
    ProducerFenced,
    TransactionAborted,
    TransactionFailed,
    TransactionStateError,
    TransactionTimeout,
)
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import DescribeFeaturesRequest, DescribeFeaturesResponse
from quorumlog.messages.produce import InitProducerIdRequest, ProduceRequest
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
)
from quorumlog.rpc.transport import NotServed, OutcomeUnknown

LEVELS = pytest.mark.parametrize("level", [0, 2])
GROUP = GroupMetadata("g", 3, "m", "i")


def make(cluster: TransactionalCluster, name: str = "x", **options: Any) -> AsyncProducer:
    options = {"bootstrap_servers": "b1,b2", "retry_backoff_ms": 2, "retry_backoff_max_ms": 10, **options}
    return AsyncProducer(
        cluster,  # type: ignore[arg-type]
        clock=TestClock(),
        rng=random.Random(1),
        transactional_id=name,
        **options,
    )


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    virtual_time.run(scenario())


def lost(_: Any) -> Exception:
    return OutcomeUnknown("lost")


def ended(code: ErrorCode) -> Callable[[Any], EndTxnResponse]:
    return lambda _: EndTxnResponse(error_code=code)


def values(cluster: TransactionalCluster) -> list[bytes | None]:
    return [value for partition in range(3) for value in cluster.visible("t", partition)]


@LEVELS
def test_a_block_commits_what_it_sent(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            for turn in range(3):
                async with producer.transaction():
                    for partition in range(3):
                        await producer.send("t", f"{turn}-{partition}", partition=partition)

    run(scenario)
    assert [cluster.visible("t", 1), cluster.visible("t", 2)] == [[b"0-1", b"1-1", b"2-1"], [b"0-2", b"1-2", b"2-2"]]
    epochs = [one.producer_epoch for one in cluster.asked(EndTxnRequest)]
    assert epochs == ([0, 1, 2] if level == 2 else [0, 0, 0])
    assert len(cluster.asked(InitProducerIdRequest)) == 1
    assert bool(cluster.asked(AddPartitionsToTxnRequest)) == (level == 0)
    assert {one.transaction_version for one in cluster.asked(ProduceRequest)} == {level}


@LEVELS
def test_a_block_that_raises_aborts(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await (await producer.send("t", b"acknowledged", partition=0))
                    waiting = await producer.send("t", b"waits", partition=1)
                    raise ZeroDivisionError
            with pytest.raises(TransactionAborted):
                await waiting
            async with producer.transaction():
                await producer.send("t", b"kept", partition=0)

    run(scenario)
    assert values(cluster) == [b"kept"]
    assert b"acknowledged" in cluster.values("t", 0)
    epochs = [header.producer_epoch for header, _ in cluster.stored("t", 0) if not header.is_control]
    assert epochs[-1] > epochs[0], "what the abort left on its way must not join the next transaction"


@LEVELS
def test_nothing_is_told_of_a_transaction_without_records(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            async with producer.transaction():
                pass
            await producer.begin()
            await producer.abort()

    run(scenario)
    assert not cluster.asked(EndTxnRequest)


def test_a_cluster_that_carries_no_transactions_to_this_client_is_named_at_once() -> None:
    """Not after `max_block_ms`, and with the reason."""
    cluster = TransactionalCluster()
    reason = "b1:9092 serves DescribeFeatures neither by the lane nor by gRPC"
    cluster.fault(DescribeFeaturesRequest, *[lambda _: NotServed(reason)] * 9)

    async def scenario() -> None:
        begun_s = asyncio.get_running_loop().time()
        with pytest.raises(FatalTransactionError, match="neither by the lane nor by gRPC"):
            async with make(cluster, max_block_ms=10_000) as producer, producer.transaction():
                pass
        assert asyncio.get_running_loop().time() - begun_s < 2

    run(scenario)


@LEVELS
def test_a_level_is_not_taken_from_a_broker_that_does_not_know_it_yet(level: int) -> None:
    """It has no metadata, and its answer no features: that is no level 0."""
    cluster = TransactionalCluster(level=level)
    early = DescribeFeaturesResponse(error_code=ErrorCode.LEADER_NOT_AVAILABLE)
    cluster.fault(DescribeFeaturesRequest, *[lambda _: early] * 3)

    async def scenario() -> None:
        async with make(cluster) as producer, producer.transaction():
            await producer.send("t", b"v", partition=0)

    run(scenario)
    assert {one.transaction_version for one in cluster.asked(ProduceRequest)} == {level}


def test_calls_at_the_wrong_time() -> None:
    cluster = TransactionalCluster()

    async def scenario() -> None:
        async with make(cluster) as producer:
            for call in (producer.commit, producer.abort, lambda: producer.send("t", b"v")):
                with pytest.raises(TransactionStateError):
                    await call()
            async with producer.transaction():
                with pytest.raises(TransactionStateError, match="in a transaction"):
                    await producer.begin()
                with pytest.raises(TransactionStateError):
                    async with producer.transaction():
                        raise AssertionError("a nested block")
                await producer.send("t", b"v", partition=0)

    run(scenario)
    assert values(cluster) == [b"v"]


def test_a_block_may_end_its_transaction_itself() -> None:
    cluster = TransactionalCluster()

    async def scenario() -> None:
        async with make(cluster) as producer, producer.transaction():
            await producer.send("t", b"v", partition=0)
            await producer.abort()

    run(scenario)
    assert values(cluster) == []


@LEVELS
def test_offsets_are_committed_with_the_transaction(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            async with producer.transaction():
                await producer.send("t", b"v", partition=0)
                await producer.send_offsets({("in", 0): 5, ("in", 1): 7}, GROUP)
                await producer.send_offsets({}, GROUP)
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_offsets({("in", 0): 99}, GROUP)
                    raise ZeroDivisionError

    run(scenario)
    cluster.mark()
    assert cluster.committed_offsets == {("g", "in", 0): 5, ("g", "in", 1): 7}
    sent = cluster.asked(TxnOffsetCommitRequest)[0]
    assert (sent.generation_id, sent.member_id, sent.group_instance_id) == (3, "m", "i")
    assert bool(cluster.asked(AddOffsetsToTxnRequest)) == (level == 0)


def test_a_member_that_was_replaced_cannot_commit() -> None:
    cluster = TransactionalCluster()
    cluster.members["g"] = "another"

    async def scenario() -> None:
        async with make(cluster) as producer:
            with pytest.raises(TransactionFailed, match="removed this member") as caught:
                async with producer.transaction():
                    await producer.send("t", b"v", partition=0)
                    await producer.send_offsets({("in", 0): 5}, GROUP)
            assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
            async with producer.transaction():
                await producer.send("t", b"next", partition=0)

    run(scenario)
    assert values(cluster) == [b"next"] and not cluster.committed_offsets


@LEVELS
def test_a_fenced_producer_says_so_and_stops(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            with pytest.raises(ProducerFenced, match=r"another producer has taken over .*'x'") as caught:
                async with producer.transaction():
                    await (await producer.send("t", b"v", partition=0))
                    cluster.fence("x")
            assert not caught.value.outcome_unknown
            for call in (producer.begin, producer.commit, producer.abort, lambda: producer.send("t", b"v")):
                with pytest.raises(ProducerFenced):
                    await call()

    run(scenario)
    assert values(cluster) == []


@LEVELS
def test_a_new_producer_fences_the_one_before(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as old, make(cluster) as new:
            await old.begin()
            await (await old.send("t", b"old", partition=0))
            async with new.transaction():
                await new.send("t", b"new", partition=0)
            with pytest.raises((ProducerFenced, TransactionFailed)):
                await old.send("t", b"late", partition=1)
                await old.commit()

    run(scenario)
    assert values(cluster) == [b"new"]


@LEVELS
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_repeated(level: int, when: str) -> None:
    cluster = TransactionalCluster(level=level)
    (cluster.fault if when == "before" else cluster.fault_after)(EndTxnRequest, lost, lost)

    async def scenario() -> None:
        async with make(cluster) as producer:
            for value in (b"1", b"2"):
                async with producer.transaction():
                    await producer.send("t", value, partition=0)

    run(scenario)
    assert values(cluster) == [b"1", b"2"]
    assert len(cluster.asked(EndTxnRequest)) == 4


def test_a_commit_that_times_out_can_only_be_repeated() -> None:
    cluster = TransactionalCluster()

    async def scenario() -> None:
        async with make(cluster, max_block_ms=150) as producer:
            await producer.begin()
            await (await producer.send("t", b"v", partition=0))
            cluster.fault_after(EndTxnRequest, *[lost] * 1000)
            with pytest.raises(TransactionTimeout, match="may be committed") as caught:
                await producer.commit()
            assert caught.value.outcome_unknown
            cluster.after.clear()
            with pytest.raises(TransactionStateError, match="call commit"):
                await producer.abort()
            await producer.commit()

    run(scenario)
    assert values(cluster) == [b"v"]


@LEVELS
def test_the_coordinator_moves(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            for node in (2, 1, 3):
                cluster.coordinator = node
                async with producer.transaction():
                    await producer.send("t", f"{node}", partition=0)

    run(scenario)
    assert values(cluster) == [b"2", b"1", b"3"]


@LEVELS
def test_the_next_transaction_waits_for_the_markers_of_the_last(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            async with producer.transaction():
                await producer.send("t", b"1", partition=0)
            cluster.marks = False
            async with producer.transaction():
                await producer.send("t", b"2", partition=0)
            await producer.begin()
            delivery = await producer.send("t", b"3", partition=1)
            await asyncio.sleep(0.1)
            assert not delivery.done()
            cluster.marks = True
            await producer.commit()

    run(scenario)
    assert values(cluster) == [b"1", b"2", b"3"]


@LEVELS
def test_a_transaction_that_timed_out_at_the_coordinator(level: int) -> None:
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as producer:
            await producer.begin()
            await (await producer.send("t", b"v", partition=0))
            cluster.world.pass_ms(100_000)
            cluster.mark()
            with pytest.raises(
                ProducerFenced, match="or its transaction was open for longer than transaction_timeout_ms"
            ):
                await producer.commit()

    run(scenario)
    assert values(cluster) == []


def test_a_record_that_fails_fails_the_transaction() -> None:
    cluster = TransactionalCluster()

    async def scenario() -> None:
        async with make(cluster, delivery_timeout_ms=200) as producer:
            cluster.fault(ProduceRequest, *[lost] * 1000)
            with pytest.raises(TransactionFailed, match="not acknowledged within 200 ms"):
                async with producer.transaction():
                    await producer.send("t", b"v", partition=0)
            cluster.faults.clear()
            with pytest.raises(TransactionFailed):
                async with producer.transaction():
                    await producer.send("t", b"fits", partition=0)
                    rows = pa.table({"value": pa.array([b"x" * (5 << 20)], pa.binary())})
                    delivery = await producer.send_arrow("t", rows, partition=1)
            with pytest.raises(RecordTooLarge):
                await delivery
            async with producer.transaction():
                await (await producer.send_arrow("t", pa.table({"value": pa.array([b"v"], pa.binary())}), 0))

    run(scenario)
    assert values(cluster) == [b"v"]


def test_closing_aborts_what_is_open() -> None:
    cluster = TransactionalCluster()

    async def scenario() -> None:
        async with make(cluster) as producer:
            await producer.begin()
            await (await producer.send("t", b"v", partition=0))

    run(scenario)
    assert [one.committed for one in cluster.asked(EndTxnRequest)] == [False]


@LEVELS
def test_a_transaction_that_was_begun_elsewhere_is_left_open(level: int) -> None:
    """Its producer asks for no identity, and neither ends it nor aborts it, also if it fails."""
    cluster = TransactionalCluster(level=level)

    async def scenario() -> None:
        async with make(cluster) as owner:
            await owner.begin()
            await (await owner.send("t", b"own", partition=0))
            identity = owner.transactions.machine.identity
            assert identity is not None
            begun = BegunTransaction("x", *identity, level)
            async with make(cluster, begun=begun) as other:
                await (await other.send("t", b"lent", partition=1))
                for call in (other.begin, other.commit, other.abort, other.init_transactions):
                    with pytest.raises(ConfigError, match="was begun elsewhere, and is ended there"):
                        await call()
            failing = make(cluster, begun=begun)
            await failing.send("t", b"dropped", partition=2)
            await failing.close(raise_errors=False, flush=False)
            assert cluster.asked(EndTxnRequest) == []
            await owner.commit()

    run(scenario)
    assert values(cluster) == [b"own", b"lent"]
    assert len(cluster.asked(InitProducerIdRequest)) == 1


def test_answers_that_end_the_producer() -> None:
    cluster = TransactionalCluster()
    cluster.fault(EndTxnRequest, ended(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))

    async def scenario() -> None:
        async with make(cluster) as producer:
            with pytest.raises(FatalTransactionError, match="does not allow"):
                async with producer.transaction():
                    await producer.send("t", b"v", partition=0)
        async with make(cluster, transaction_timeout_ms=1_000_000) as producer:
            with pytest.raises(FatalTransactionError, match=r"transaction\.max\.timeout\.ms"):
                await producer.init_transactions()

    run(scenario)


def test_options() -> None:
    cluster = TransactionalCluster()
    for options in ({"acks": 1}, {"enable_idempotence": False}, {"transaction_timeout_ms": 0}):
        with pytest.raises(ConfigError, match="transact"):
            make(cluster, **options)
    for name in ("", "x" * 40_000):
        with pytest.raises(ConfigError, match="transactional_id"):
            make(cluster, name)

    async def scenario() -> None:
        producer = AsyncProducer(
            cluster,  # type: ignore[arg-type]
            {"bootstrap.servers": "b1"}, clock=TestClock(), rng=random.Random(1),
        )  # fmt: skip
        async with producer:
            with pytest.raises(ConfigError, match="give it a transactional_id"):
                await producer.begin()

    run(scenario)


@pytest.mark.parametrize("bad", [{("in", 0): -1}, {("in", 0): "5"}, {("in", -1): 5}])
def test_offsets_that_are_none(bad: Any) -> None:
    async def scenario() -> None:
        async with make(TransactionalCluster()) as producer, producer.transaction():
            with pytest.raises(ConfigError, match="next offset to read"):
                await producer.send_offsets(bad, GROUP)
            with pytest.raises(ConfigError, match="group_metadata"):
                await producer.send_offsets({("in", 0): 5}, GroupMetadata(""))
            with pytest.raises(ConfigError, match=r"not a group's metadata: 'g'; pass consumer.group_metadata"):
                await producer.send_offsets({("in", 0): 5}, "g")  # type: ignore[arg-type]

    run(scenario)


def test_offsets_bear_the_ids_of_the_topics_that_the_consumer_has_read() -> None:
    """A topic of the same name that is made meanwhile gets no offset of the former one."""
    cluster = TransactionalCluster()
    group = GROUP._replace(topic_ids=(("in", b"i" * 16),))

    async def scenario() -> None:
        async with make(cluster) as producer, producer.transaction():
            await producer.send_offsets({("in", 0): 5, ("other", 0): 7}, group)

    run(scenario)
    (asked,) = [request for _, request in cluster.requests if isinstance(request, TxnOffsetCommitRequest)]
    assert {topic.name: topic.topic_id for topic in asked.topics} == {"in": b"i" * 16, "other": b""}
