"""The idempotent producer against brokers that check sequences as ours do: one copy, in order, under any fault."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pyarrow as pa
import pytest
from fake_cluster import FakeCluster, TestClock
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_time import run

from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.client.batches.numbering import MAX_PRODUCER_EPOCH
from quorumlog.client.errors import ConfigError, DeliveryTimeout, RequestFailed
from quorumlog.client.options import ProducerOptions, parse_options
from quorumlog.client.producer import AsyncProducer
from quorumlog.errors import ErrorCode
from quorumlog.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from quorumlog.records import BatchHeader, headers
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from quorumlog_storage.producers.producer_state import ProducerStates
from tests.parts import few


def make(cluster: FakeCluster, **options: Any) -> AsyncProducer:
    options = {"bootstrap_servers": "b1,b2", "retry_backoff_ms": 2, "retry_backoff_max_ms": 4, **options}
    return AsyncProducer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


def refusal(code: ErrorCode) -> Any:
    def answer(request: ProduceRequest) -> ProduceResponse:
        topics = tuple(
            ProduceTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ProducePartitionResponse(index=part.index, error_code=code) for part in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return ProduceResponse(topics=topics)

    return answer


def stored(cluster: FakeCluster, partition: int = 0) -> list[BatchHeader]:
    return [header for _, _, data in cluster.topics["t"][partition].batches for header in headers(data)]


def lost(_: Any) -> Exception:
    return OutcomeUnknown("lost")


def passed(_: Any) -> None:
    return None


FAULTS = {
    "none": passed,
    "refused": lambda _: NotDelivered("refused"),
    "lost": lost,
    "too few": refusal(ErrorCode.NOT_ENOUGH_REPLICAS),
    "no leader": refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER),
}
AFTER = {
    "none": passed,
    "lost": lost,
    "late": refusal(ErrorCode.REQUEST_TIMED_OUT),
    "few": refusal(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
}


@pytest.mark.parametrize("after", ["lost", "late", "few"])
def test_an_answer_lost_after_the_append_does_not_duplicate_the_record(after: str) -> None:
    cluster = FakeCluster()
    cluster.fault_after(ProduceRequest, AFTER[after], AFTER[after])

    async def scenario() -> None:
        async with make(cluster) as producer:
            metadata = await (await producer.send("t", b"v", partition=0))
            assert metadata.offset == 0 and not metadata.may_be_duplicated
            assert producer.stats.duplicates_possible == 0 and producer.stats.unknown_outcomes == 2

    run(scenario())
    assert cluster.values("t", 0) == [b"v"]


@pytest.mark.parametrize("arrow", [False, True])
@settings(max_examples=few(60))
@given(st.integers(0, 1 << 32))
def test_every_record_is_stored_once_and_in_order(arrow: bool, seed: int) -> None:
    """Requests overtake each other and fail before or after the append; leaders move. On virtual time."""
    cluster, rng = FakeCluster(partitions=2), random.Random(seed)
    before = [rng.choice(sorted(FAULTS)) for _ in range(rng.randrange(10))]
    late = [rng.choice(sorted(AFTER)) for _ in range(rng.randrange(25))]
    cluster.fault(ProduceRequest, *(FAULTS[name] for name in before), *([passed] * 1000))
    cluster.fault_after(ProduceRequest, *(AFTER[name] for name in late), *([passed] * 1000))
    cluster.delay_s = lambda: rng.choice([0, 0, 0, 0.001, 0.003, 0.02])

    async def scenario() -> None:
        async with make(cluster, batch_size=150) as producer:
            for start in range(0, 60, 20):
                numbers = [str(n) for n in range(start, start + 20)]
                for partition in (0, 1):
                    if arrow:
                        await producer.send_arrow("t", pa.table({"value": numbers}), partition=partition)
                    else:
                        for number in numbers:
                            await producer.send("t", number, partition=partition)
                cluster.move("t", rng.randrange(2), rng.randrange(1, 4))
                await asyncio.sleep(0.002)

    scheduler = Scheduler(seed)
    SimLoop(scheduler, "client").run_until_complete(scenario(), scheduler.now_ns + 60_000 * NS_PER_MS)
    for partition in (0, 1):
        assert cluster.values("t", partition) == [str(n).encode() for n in range(60)]
        assert {header.producer_epoch for header in stored(cluster, partition)} == {0}


def test_full_batches_are_pipelined_after_the_first_acknowledgement() -> None:
    cluster = FakeCluster(partitions=1)
    under_way: list[int] = []

    async def scenario() -> None:
        cluster.gate = asyncio.Event()
        async with make(cluster, batch_size=100) as producer:
            for i in range(30):
                await producer.send("t", str(i))
            await _reached(cluster, 1)
            under_way.append(_produces(cluster))
            cluster.gate.set()
            cluster.gate = None
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            cluster.gate = asyncio.Event()
            await _reached(cluster, 6)
            under_way.append(_produces(cluster))
            cluster.gate.set()

    run(scenario())
    assert under_way == [1, 6]
    assert cluster.values("t", 0) == [str(i).encode() for i in range(30)]


async def _reached(cluster: FakeCluster, requests: int) -> None:
    """Waits for so many, and then a moment longer, in which there might be more."""
    async with asyncio.timeout(10):
        while _produces(cluster) < requests:  # noqa: ASYNC110 - requests are no event
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)


def _produces(cluster: FakeCluster) -> int:
    return sum(isinstance(request, ProduceRequest) for _, request in cluster.requests)


def test_an_expired_batch_does_not_hold_back_later_ones() -> None:
    """The outcome of its number is unknown, so later batches use a new epoch, which fences the old one."""
    cluster = FakeCluster(partitions=1)
    cluster.fault(ProduceRequest, passed, *[lost] * 200)

    async def scenario() -> None:
        async with make(cluster, delivery_timeout_ms=60) as producer:
            await (await producer.send("t", b"first"))
            with pytest.raises(DeliveryTimeout) as failure:
                await (await producer.send("t", b"given up"))
            assert failure.value.outcome_unknown
            cluster.faults.clear()
            await (await producer.send("t", b"second"))
            await (await producer.send("t", b"third"))

    run(scenario())
    assert cluster.values("t", 0) == [b"first", b"second", b"third"]
    assert [(header.producer_epoch, header.base_sequence) for header in stored(cluster)] == [(0, 0), (1, 0), (1, 1)]


def test_a_refused_batch_leaves_no_gap_for_later_ones() -> None:
    cluster = FakeCluster(partitions=1)
    cluster.fault(ProduceRequest, passed, refusal(ErrorCode.INVALID_RECORD), *[passed] * 50)

    async def scenario() -> None:
        async with make(cluster, batch_size=100) as producer:
            await (await producer.send("t", b"first"))
            deliveries = [await producer.send("t", str(i)) for i in range(20)]
            failed = 0
            for delivery in deliveries:
                try:
                    assert not (await delivery).may_be_duplicated
                except RequestFailed as error:
                    assert error.code is ErrorCode.INVALID_RECORD
                    failed += 1
            assert failed == deliveries.index(deliveries[failed])  # only the refused batch, so the rest is a prefix

    run(scenario())
    values = [int(value or b"") for value in cluster.values("t", 0)[1:]]
    assert values == list(range(20 - len(values), 20)) and 0 < len(values) < 20
    assert {header.producer_epoch for header in stored(cluster)} == {0, 1}


def test_a_leader_that_lost_acknowledged_records_gets_the_rest() -> None:
    """An unclean election: the lost records stay lost, but the producer goes on and duplicates nothing."""
    cluster = FakeCluster(partitions=1)
    log = cluster.topics["t"][0]

    async def scenario() -> None:
        async with make(cluster) as producer:
            for value in (b"0", b"1", b"2"):
                await (await producer.send("t", value))
            del log.batches[1:]
            log.end, log.producers = 1, ProducerStates()
            for header in stored(cluster):
                log.producers.note(header)
            for value in (b"3", b"4"):
                await (await producer.send("t", value))

    run(scenario())
    assert cluster.values("t", 0) == [b"0", b"3", b"4"]
    assert [header.producer_epoch for header in stored(cluster)] == [0, 1, 1]


def test_a_new_producer_id_is_requested_when_the_epochs_are_used_up() -> None:
    cluster = FakeCluster(partitions=1)
    last = InitProducerIdResponse(producer_id=7, producer_epoch=MAX_PRODUCER_EPOCH)
    cluster.fault(InitProducerIdRequest, lambda _: last, passed)
    cluster.fault(ProduceRequest, passed, refusal(ErrorCode.INVALID_RECORD), *[passed] * 9)

    async def scenario() -> None:
        async with make(cluster) as producer:
            await (await producer.send("t", b"0"))
            with pytest.raises(RequestFailed):
                await (await producer.send("t", b"1"))
            await (await producer.send("t", b"2"))

    run(scenario())
    assert [(header.producer_id, header.producer_epoch) for header in stored(cluster)] == [
        (7, MAX_PRODUCER_EPOCH),
        (1001, 0),
    ]


def test_the_producer_id_is_requested_until_it_is_granted() -> None:
    cluster = FakeCluster()
    later = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    cluster.fault(InitProducerIdRequest, lambda _: later, lambda _: NotDelivered("down"), lambda _: later, passed)

    async def scenario() -> None:
        async with make(cluster) as producer:
            assert (await (await producer.send("t", b"v", partition=0))).offset == 0

    run(scenario())
    assert cluster.values("t", 0) == [b"v"]


def test_a_refused_producer_id_fails_the_waiting_records() -> None:
    cluster = FakeCluster()
    no = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    cluster.fault(InitProducerIdRequest, lambda _: no)

    async def scenario() -> None:
        async with make(cluster) as producer:
            with pytest.raises(RequestFailed) as failure:
                await (await producer.send("t", b"v", partition=0))
            assert failure.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(scenario())
    assert _produces(cluster) == 0


OPTIONS: list[tuple[dict[str, Any], bool | None]] = [
    ({}, True),
    ({"acks": "all"}, True),
    ({"acks": 1}, False),
    ({"acks": 0}, False),
    ({"enable.idempotence": "true"}, True),
    ({"enable_idempotence": False}, False),
    ({"max_in_flight_requests_per_connection": 6}, False),
    ({"acks": 1, "enable_idempotence": True}, None),
    ({"max_in_flight_requests_per_connection": 6, "enable_idempotence": True}, None),
    ({"enable_idempotence": "perhaps"}, None),
]


@pytest.mark.parametrize(("options", "want"), OPTIONS, ids=str)
def test_when_a_producer_is_idempotent(options: dict[str, Any], want: bool | None) -> None:
    if want is None:
        with pytest.raises(ConfigError, match="enable_idempotence"):
            parse_options(ProducerOptions, options, {})
    else:
        assert parse_options(ProducerOptions, options, {}).idempotent is want


def test_without_idempotence_nothing_is_numbered() -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster, acks=1) as producer:
            await (await producer.send("t", b"v", partition=0))

    run(scenario())
    assert [header.producer_id for header in stored(cluster)] == [-1]
    assert not any(isinstance(request, InitProducerIdRequest) for _, request in cluster.requests)
