"""The producer against brokers in memory: delivery, order, retries, limits, and correct reports of duplicates."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

import pyarrow as pa
import pytest
from fake_cluster import FakeCluster, FakeLog, TestClock
from virtual_time import run

from quorumlog.client.batches.accumulator import Batch
from quorumlog.client.batches.record_parts import header_pairs
from quorumlog.client.cluster.topic_limit import MOST_BYTES, BatchLimit
from quorumlog.client.errors import (
    BufferExhausted,
    ClientClosed,
    ConfigError,
    DeliveryTimeout,
    NoSuchTopic,
    RecordTooLarge,
    RequestFailed,
    Unavailable,
)
from quorumlog.client.producer import AsyncProducer
from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import (
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    MetadataRequest,
)
from quorumlog.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from quorumlog.records import Codec, partition_for_key
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown


def make(cluster: FakeCluster, **options: Any) -> AsyncProducer:
    options = {"bootstrap_servers": "b1,b2", "retry_backoff_ms": 2, "retry_backoff_max_ms": 10, **options}
    return AsyncProducer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


def refusal(code: ErrorCode) -> Any:
    def answer(request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(
            topics=tuple(
                ProduceTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ProducePartitionResponse(index=part.index, error_code=code) for part in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return answer


def test_records_arrive_where_their_keys_say_and_in_order() -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster) as producer:
            deliveries = [await producer.send("t", str(i), key=f"k{i % 7}") for i in range(200)]
            found = [await delivery for delivery in deliveries]
        assert not any(metadata.may_be_duplicated for metadata in found)
        for i, metadata in enumerate(found):
            assert cluster.values("t", metadata.partition)[metadata.offset] == str(i).encode()

    run(scenario())
    for partition in range(3):
        values = [int(value or b"") for value in cluster.values("t", partition)]
        assert values == sorted(values)


@pytest.mark.parametrize(
    ("fault", "duplicates"),
    [
        (lambda _: NotDelivered("refused"), 0),
        (lambda _: OutcomeUnknown("broken"), 1),
        (refusal(ErrorCode.NOT_ENOUGH_REPLICAS), 0),
        (refusal(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), 1),
        (refusal(ErrorCode.REQUEST_TIMED_OUT), 1),
    ],
)
def test_a_retry_reports_whether_it_may_have_duplicated(fault: Any, duplicates: int) -> None:
    cluster = FakeCluster()
    cluster.fault(ProduceRequest, fault)

    async def scenario() -> None:
        async with make(cluster, enable_idempotence=False) as producer:
            metadata = await (await producer.send("t", b"v", partition=0))
            assert metadata.may_be_duplicated is bool(duplicates)
            assert producer.stats.duplicates_possible == duplicates

    run(scenario())
    assert cluster.values("t", 0) == [b"v"]


def test_an_answer_lost_after_the_append_duplicates_the_record_and_is_reported() -> None:
    cluster = FakeCluster()
    cluster.fault_after(ProduceRequest, lambda _: OutcomeUnknown("answer lost"))

    async def scenario() -> None:
        async with make(cluster, enable_idempotence=False) as producer:
            metadata = await (await producer.send("t", b"v", partition=0))
            assert metadata.may_be_duplicated and metadata.offset == 1

    run(scenario())
    assert cluster.values("t", 0) == [b"v", b"v"]


def test_order_survives_retries_with_requests_in_flight() -> None:
    cluster = FakeCluster(partitions=1)
    cluster.fault(ProduceRequest, *[refusal(ErrorCode.NOT_ENOUGH_REPLICAS), lambda _: None] * 5)

    async def scenario() -> None:
        async with make(cluster, batch_size=100) as producer:
            for i in range(100):
                await producer.send("t", str(i))

    run(scenario())
    assert cluster.values("t", 0) == [str(i).encode() for i in range(100)]


def test_a_moved_leader_is_followed_by_its_hint() -> None:
    cluster = FakeCluster(partitions=1)

    async def scenario() -> None:
        async with make(cluster) as producer:
            await (await producer.send("t", b"1"))
            cluster.move("t", 0, 3)
            await (await producer.send("t", b"2"))

    run(scenario())
    assert cluster.values("t", 0) == [b"1", b"2"]
    assert [node for node, request in cluster.requests if isinstance(request, ProduceRequest)] == [1, 1, 3]


@pytest.mark.parametrize(
    "code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
)
def test_a_final_refusal_is_raised_and_not_retried(code: ErrorCode) -> None:
    cluster = FakeCluster()
    cluster.fault(ProduceRequest, refusal(code))

    async def scenario() -> None:
        async with make(cluster) as producer:
            with pytest.raises(RequestFailed) as failure:
                await (await producer.send("t", b"v"))
            assert failure.value.code is code

    run(scenario())


def test_close_raises_an_unseen_failure() -> None:
    cluster = FakeCluster()
    cluster.fault(ProduceRequest, refusal(ErrorCode.INVALID_RECORD))

    async def scenario() -> None:
        producer = make(cluster)
        await producer.send("t", b"v")
        with pytest.raises(RequestFailed):
            await producer.close()

    run(scenario())


def test_an_expired_delivery_reports_an_unknown_outcome() -> None:
    cluster = FakeCluster()
    cluster.fault(ProduceRequest, *[lambda _: OutcomeUnknown("broken")] * 1000)

    async def scenario() -> None:
        async with make(cluster, delivery_timeout_ms=100) as producer:
            with pytest.raises(DeliveryTimeout) as failure:
                await (await producer.send("t", b"v"))
            assert failure.value.outcome_unknown

    run(scenario())


def test_records_that_wait_behind_a_quota_say_so() -> None:
    """They were `not acknowledged within 30000 ms in 0 tries`, with no reason."""
    cluster = FakeCluster(partitions=1)

    async def scenario() -> None:
        cluster.fault_after(ProduceRequest, lambda request: held_back(request, 60_000))
        async with make(cluster, delivery_timeout_ms=100, batch_size=500) as producer:
            await (await producer.send("t", b"first"))
            cluster.gate = asyncio.Event()
            sent = [await producer.send("t", b"v" * 400) for _ in range(20)]
            with pytest.raises(
                DeliveryTimeout, match=r"0 tries; a broker holds this client back for 60000 ms \(a quota"
            ):
                await sent[-1]
            cluster.gate.set()
            await asyncio.gather(*sent, return_exceptions=True)

    def held_back(request: ProduceRequest, ms: int) -> ProduceResponse:
        parts = (ProducePartitionResponse(index=0, base_offset=0),)
        topics = (ProduceTopicResponse(name="t", topic_id=request.topics[0].topic_id, partitions=parts),)
        return ProduceResponse(topics=topics, throttle_time_ms=ms)

    run(scenario())


def test_a_batch_that_expires_on_its_way_arrives_as_it_was_sent() -> None:
    """CVE-2026-35554: the buffer of an expired batch was used again while it was being sent, for another topic."""
    cluster = FakeCluster(partitions=1)
    cluster.topics["u"] = [FakeLog(leader=2)]
    cluster.ids["u"] = bytes([9]) * 16

    async def scenario() -> None:
        cluster.gate = asyncio.Event()
        async with make(cluster, delivery_timeout_ms=30, batch_size=500, linger_ms=0) as producer:
            sent = []
            for _ in range(20):
                sent += [await producer.send(topic, topic.encode() * 100) for topic in ("t", "u")]
                await asyncio.sleep(0.005)
            cluster.gate.set()
            outcomes = await asyncio.gather(*sent, return_exceptions=True)
        assert any(isinstance(one, DeliveryTimeout) for one in outcomes), "none has expired"

    run(scenario())
    for topic in ("t", "u"):
        assert set(cluster.values(topic, 0)) == {topic.encode() * 100}


def test_memory_is_bounded() -> None:
    cluster = FakeCluster(partitions=1)

    async def scenario() -> None:
        cluster.gate = asyncio.Event()
        producer = make(cluster, buffer_memory=2000, batch_size=600, max_block_ms=50)
        with pytest.raises(BufferExhausted):
            for _ in range(100):
                await producer.send("t", bytes(100))
        cluster.gate.set()
        await producer.send("t", b"goes again")
        await producer.close()

    run(scenario())
    assert cluster.values("t", 0)[-1] == b"goes again"


def test_bad_sends_are_refused_and_store_nothing() -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        producer = make(cluster, max_request_size=1000, max_block_ms=50)
        with pytest.raises(RecordTooLarge):
            await producer.send("t", bytes(1000))
        with pytest.raises(RequestFailed, match="partitions 0 to 2"):
            await producer.send("t", b"v", partition=3)
        with pytest.raises(Unavailable):
            await producer.send("nowhere", b"v")
        with pytest.raises(TypeError, match="header 1"):
            await producer.send("t", b"v", headers=[("a", b""), ("b", 1)])  # type: ignore[list-item]
        with pytest.raises(ConfigError, match="send_arrow"):
            await producer.send_arrow("t", [1])
        await producer.close()
        with pytest.raises(ClientClosed):
            await producer.send("t", b"v")

    run(scenario())
    assert all(not cluster.values("t", partition) for partition in range(3))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"timestamp_ms": -2}, RequestFailed),
        ({"timestamp_ms": 2**63 - 1}, RequestFailed),
        ({"timestamp_ms": 1.5}, TypeError),
        ({"value": {"a": 1}}, TypeError),
        ({"key": [1]}, TypeError),
        ({"headers": {"\ud800": b""}}, UnicodeEncodeError),
    ],
    ids=str,
)
def test_an_invalid_record_does_not_affect_others(wrong: dict[str, Any], error: type[Exception]) -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster) as producer:
            before = await producer.send("t", b"1", partition=0)
            with pytest.raises(error):
                await producer.send("t", **{"value": b"v", "partition": 0, **wrong})
            after = await producer.send("t", b"2", partition=0)
            assert ((await before).offset, (await after).offset) == (0, 1)

    run(scenario())


def test_a_value_changed_after_send_is_sent_unchanged() -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        value: Any = bytearray(b"then")
        async with make(cluster) as producer:
            await producer.send("t", value, partition=0)
            value[:] = b"late"

    run(scenario())
    assert cluster.values("t", 0) == [b"then"]


@pytest.mark.parametrize("looked_at", [True, False])
def test_after_an_internal_error_nothing_hangs_and_it_is_raised(
    monkeypatch: pytest.MonkeyPatch, looked_at: bool
) -> None:
    """One batch is in flight, another cannot be encoded."""
    cluster, encode = FakeCluster(), Batch.encode

    def encode_or_fail(batch: Batch, codec: Codec) -> Any:
        if batch.partition == 1:
            raise KeyError("ours")
        return encode(batch, codec)

    monkeypatch.setattr(Batch, "encode", encode_or_fail)

    async def scenario() -> None:
        producer, came, gate, answer = make(cluster), asyncio.Event(), asyncio.Event(), cluster.answer

        async def held(node: int, request: Any) -> Any:
            if isinstance(request, ProduceRequest):
                came.set()
                await gate.wait()
            return await answer(node, request)

        monkeypatch.setattr(cluster, "answer", held)
        deliveries = [await producer.send("t", b"v", partition=0)]
        await came.wait()
        deliveries += [await producer.send("t", b"v", partition=1)]
        await producer.flush()
        with pytest.raises(ClientClosed, match="ours"):
            await producer.send("t", b"v")
        for delivery in deliveries if looked_at else ():
            with pytest.raises(ClientClosed, match="ours"):
                await delivery
        gate.set()
        if looked_at:
            await producer.close(raise_errors=False)
        else:
            with pytest.raises(ClientClosed, match="ours"):
                await producer.close()

    run(scenario())


def test_without_acks_the_offset_is_unknown() -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster, acks=0) as producer:
            assert (await (await producer.send("t", b"v"))).offset == -1

    run(scenario())


def test_headers_as_a_mapping_or_as_pairs() -> None:
    assert header_pairs({"a": "x", "b": None}) == (("a", b"x"), ("b", None)) == header_pairs([("a", b"x"), ("b", None)])


@pytest.mark.parametrize("keyed", [True, False])
def test_arrow_rows_are_stored_once_each_and_reported(keyed: bool) -> None:
    cluster = FakeCluster()
    rows = 5000
    columns = {"value": pa.array([str(i) for i in range(rows)])}
    if keyed:
        columns["key"] = pa.array([f"k{i % 11}" if i % 5 else None for i in range(rows)])

    async def scenario() -> None:
        async with make(cluster, batch_size=4000) as producer:
            ranges = await (await producer.send_arrow("t", pa.table(columns)))
        assert sum(part.count for part in ranges) == rows
        for part in ranges:
            stored = cluster.values("t", part.partition)[part.base_offset : part.base_offset + part.count]
            assert stored == [str(row).encode() for row in part.rows]

    run(scenario())
    counts = [len(cluster.values("t", partition)) for partition in range(3)]
    assert sum(counts) == rows and min(counts) > 0


@pytest.mark.parametrize("wrong", [{"partition": [0, 3]}, {"partition": [0, 1], "timestamp": [1, -2]}], ids=str)
def test_nothing_of_a_refused_table_is_stored(wrong: dict[str, list[int]]) -> None:
    """Its first row is valid."""
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster) as producer:
            with pytest.raises(RequestFailed):
                await producer.send_arrow("t", pa.table({"value": [b"a", b"b"], **wrong}))

    run(scenario())
    assert cluster.values("t", 0) == []


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_an_arrow_row_above_the_request_size_fails_alone(compression: str) -> None:
    cluster = FakeCluster()
    rows = [b"a", random.Random(1).randbytes(5000), b"b", bytes(3000)]

    async def scenario() -> None:
        async with make(cluster, max_request_size=4000, compression_type=compression) as producer:
            delivery = await producer.send_arrow("t", pa.table({"value": rows}), partition=0)
            with pytest.raises(RecordTooLarge, match="max_request_size is 4000"):
                await delivery
            assert (producer.stats.acknowledged, producer.stats.failed) == (3, 1)

    run(scenario())
    assert cluster.values("t", 0) == [rows[0], rows[2], rows[3]]


@pytest.mark.parametrize("compression", ["gzip", "zstd", "lz4", "snappy"])
def test_rows_that_grow_under_compression_are_not_too_large(compression: str) -> None:
    """Two rows of incompressible bytes that fill a batch exactly."""
    cluster = FakeCluster()
    rows = [random.Random(number).randbytes(960) for number in range(2)]

    async def scenario() -> None:
        async with make(cluster, max_request_size=2000, compression_type=compression) as producer:
            await (await producer.send_arrow("t", pa.table({"value": rows}), partition=0))

    run(scenario())
    ((_, _, data),) = cluster.topics["t"][0].batches
    assert cluster.values("t", 0) == rows and len(data) > 2000


def test_close_raises_an_unseen_failure_of_an_arrow_row() -> None:
    async def scenario() -> None:
        producer = make(FakeCluster(), max_request_size=1000)
        await producer.send_arrow("t", pa.table({"value": [bytes(2000)]}))
        with pytest.raises(RecordTooLarge):
            await producer.close()

    run(scenario())


def test_arrow_rows_that_name_no_partition_go_by_their_keys_and_those_without_one_together() -> None:
    cluster = FakeCluster()
    keys = [None, b"a", None, b"b", b"c", None]
    table = pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([b"%d" % row for row in range(6)], pa.binary()),
            "partition": pa.array([None, None, 0, 1, None, None], pa.int32()),
        }
    )

    async def scenario() -> None:
        async with make(cluster) as producer:
            await (await producer.send_arrow("t", table, keyless=2))
            with pytest.raises(RequestFailed, match="has partitions 0 to 2, not 3"):
                await producer.send_arrow("t", table, keyless=3)

    run(scenario())
    want: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for row, (key, named) in enumerate(zip(keys, [None, None, 0, 1, None, None], strict=True)):
        by_key = 2 if key is None else partition_for_key(key, 3)
        want[by_key if named is None else named].append(b"%d" % row)
    assert {partition: cluster.values("t", partition) for partition in range(3)} == want


def test_arrow_rows_without_keys_may_stay_together() -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster) as producer:
            await (await producer.send_arrow("t", pa.table({"value": [b"v"] * 100}), keyless=1))

    run(scenario())
    assert len(cluster.values("t", 1)) == 100


def test_a_topics_limit_cuts_batches_and_refuses_a_row() -> None:
    """The row is not sent; of rows that fit none is in a batch above the limit."""
    cluster = FakeCluster()
    rows = [bytes(300)] * 20 + [bytes(3000)]

    async def scenario() -> None:
        async with make(cluster) as producer:
            delivery = await producer.send_arrow(
                "t", pa.table({"value": rows}), partition=0, limit=BatchLimit(batch_bytes=1000, row_bytes=1000)
            )
            with pytest.raises(
                RecordTooLarge, match=r"a record of 30\d\d bytes for topic 't'; its max.message.bytes is 1000"
            ):
                await delivery

    run(scenario())
    assert cluster.values("t", 0) == rows[:20]
    assert max(len(data) for _, _, data in cluster.topics["t"][0].batches) <= 1000


def test_all_rows_of_a_table_or_none() -> None:
    cluster = FakeCluster()
    rows = [bytes(300)] * 20 + [bytes(3000)]

    async def scenario() -> None:
        async with make(cluster, max_request_size=1000) as producer:
            with pytest.raises(RecordTooLarge, match="for topic 't'; max_request_size is 1000"):
                await producer.send_arrow("t", pa.table({"value": rows}), all_or_none=True)
            assert producer.stats.failed == 0
            await (await producer.send_arrow("t", pa.table({"value": rows[:20]}), partition=0, all_or_none=True))

    run(scenario())
    assert cluster.values("t", 0) == rows[:20]


LIMITS = [
    ("as produced", {"max.message.bytes": "6400", "compression.type": "producer"}, (6300, 6400)),
    ("compressed by the leader", {"max.message.bytes": "6400", "compression.type": "zstd"}, (6300, MOST_BYTES)),
    ("not told", {}, (MOST_BYTES, MOST_BYTES)),
]


@pytest.mark.parametrize(("configs", "want"), [case[1:] for case in LIMITS], ids=[case[0] for case in LIMITS])
def test_the_limit_that_a_cluster_tells(configs: dict[str, str], want: tuple[int, int]) -> None:
    cluster = FakeCluster()

    def answer(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        (asked,) = request.resources
        told = tuple(DescribedConfig(name=name, value=value, source=1) for name, value in configs.items())
        result = ConfigDescription(resource_type=2, resource_name=asked.resource_name, configs=told)
        return DescribeConfigsResponse(results=(result,))

    async def scenario() -> None:
        async with make(cluster) as producer:
            cluster.fault(DescribeConfigsRequest, answer)
            found = await producer.batch_limit("t")
            assert (found.batch_bytes, found.row_bytes) == want

    run(scenario())


def test_close_without_flush_waits_for_nothing() -> None:
    """No broker answers: a flush would wait for the delivery timeout."""
    cluster = FakeCluster()

    async def scenario() -> None:
        producer = make(cluster)
        await producer.partition_count("t", 1000)
        cluster.hung = {1, 2, 3}
        delivery = await producer.send_arrow("t", pa.table({"value": [b"v"]}))
        before = asyncio.get_running_loop().time()
        await producer.close(raise_errors=False, flush=False)
        assert asyncio.get_running_loop().time() == before
        with pytest.raises(ClientClosed):
            await delivery

    run(scenario())


def test_a_partition_count_makes_no_topic() -> None:
    cluster = FakeCluster()
    asked: list[bool] = []

    def look(request: MetadataRequest) -> None:
        asked.append(request.allow_auto_topic_creation)

    async def scenario() -> None:
        async with make(cluster) as producer:
            assert await producer.partition_count("t", 1000) == 3
            cluster.fault(MetadataRequest, *[look] * 50)
            with pytest.raises(NoSuchTopic, match="topic 'missing' did not appear within 50 ms"):
                await producer.partition_count("missing", 50)

    run(scenario())
    assert asked and not any(asked)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        producer = make(FakeCluster())
        with pytest.raises(ConfigError, match=r"send_arrow needs pyarrow and numpy .*pip install 'quorumlog\[arrow\]'"):
            await producer.send_arrow("t", pa.table({"value": [b"v"]}))
        await producer.close()

    missing = "quorumlog.client.batches.arrow_split"
    monkeypatch.setitem(sys.modules, missing, None)  # as if an import of its own had failed
    run(scenario())


@pytest.mark.parametrize("arrow", [True, False])
def test_a_batch_is_not_larger_than_the_request_size(arrow: bool) -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster, batch_size=100_000, max_request_size=2000, linger_ms=5) as producer:
            if arrow:
                await (await producer.send_arrow("t", pa.table({"value": [bytes(300)] * 50}), partition=0))
                return
            for delivery in [await producer.send("t", bytes(300), partition=0) for _ in range(50)]:
                await delivery

    run(scenario())
    sizes = [len(data) for _, _, data in cluster.topics["t"][0].batches]
    assert len(cluster.values("t", 0)) == 50 and max(sizes) <= 2000


def test_close_raises_no_failure_that_was_seen() -> None:
    cluster = FakeCluster()
    cluster.fault(ProduceRequest, *[refusal(ErrorCode.INVALID_RECORD)] * 2)

    async def scenario() -> None:
        producer = make(cluster)
        deliveries = [await producer.send("t", b"v", partition=partition) for partition in range(2)]
        await producer.flush()
        for delivery in deliveries:
            with pytest.raises(RequestFailed):
                await delivery
        await producer.close()

    run(scenario())


def test_arrow_and_plain_agree_on_the_partition_of_a_key() -> None:
    keys = [f"key-{i}" for i in range(50)]
    plain, arrow = FakeCluster(), FakeCluster()

    async def scenario() -> None:
        async with make(plain) as producer:
            for key in keys:
                await producer.send("t", key, key=key)
        async with make(arrow) as producer:
            await (await producer.send_arrow("t", pa.table({"key": keys, "value": keys})))

    run(scenario())
    for partition in range(3):
        assert plain.values("t", partition) == arrow.values("t", partition)


def test_a_partition_that_is_gone_is_not_asked_for_without_pause() -> None:
    """A topic was made anew with fewer partitions while records of the last one waited."""
    cluster = FakeCluster()

    async def scenario() -> None:
        async with make(cluster, delivery_timeout_ms=300, linger_ms=20) as producer:
            await producer.send("t", "a", partition=0)
            delivery = await producer.send("t", "b", partition=2)
            cluster.topics["t"].pop()
            cluster.ids["t"] = b"n" * 16
            await producer._link.refresh(["t"])
            with pytest.raises(DeliveryTimeout):
                await delivery

    run(scenario())
    asked = sum(isinstance(request, MetadataRequest) for _, request in cluster.requests)
    assert asked < 60, f"{asked} Metadata requests in 300 ms, with a back-off of 10 ms"
