"""What an application hangs into the clients: serializers, a partitioner, callbacks, interceptors; both forms."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fake_cluster import FakeCluster, TestClock
from group_cluster import GroupCluster
from virtual_time import run

from quorumlog.client import real_edges as edge
from quorumlog.client.batches.delivery import RecordMetadata
from quorumlog.client.blocking import Consumer, Producer
from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord
from quorumlog.client.errors import ConfigError, DeserializationFailed, RequestFailed, SerializationFailed
from quorumlog.client.options import parse_duration_ms
from quorumlog.client.plugins.interceptors import ConsumerInterceptor, OutgoingRecord, ProducerInterceptor
from quorumlog.client.plugins.serializers import HeaderList
from quorumlog.client.producer import AsyncProducer
from quorumlog.messages.produce import ProduceRequest
from quorumlog.records import Record, encode_batch
from quorumlog.rpc.transport import OutcomeUnknown

QUICK = {"bootstrap_servers": "b1,b2", "retry_backoff_ms": 2, "retry_backoff_max_ms": 10}
EDGES: dict[str, Any] = {"clock": TestClock(), "rng": random.Random(1)}
WALL_MS = TestClock().wall_ms()


def producing(cluster: FakeCluster, **options: Any) -> AsyncProducer:
    return AsyncProducer(cluster, **EDGES, **{**QUICK, **options})  # type: ignore[arg-type]


def consuming(cluster: FakeCluster, **options: Any) -> AsyncConsumer:
    return AsyncConsumer(cluster, **EDGES, **{**QUICK, "fetch_max_wait_ms": 10, **options})  # type: ignore[arg-type]


def holding(values: list[bytes | None], timestamps_ms: list[int] | None = None, kind: Any = FakeCluster) -> Any:
    cluster = kind(partitions=1)
    for i, value in enumerate(values):
        when_ms = timestamps_ms[i] if timestamps_ms else 5
        cluster.topics["t"][0].append(encode_batch([Record(offset=0, timestamp_ms=when_ms, key=b"k", value=value)]))
    return cluster


class Wrapped:
    """Kafka's shape: it knows the topic, and adds a header."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def serialize(self, topic: str, headers: HeaderList, data: Any) -> bytes:
        self.seen.append((topic, data))
        headers.append(("format", b"json"))
        return json.dumps(data).encode()

    def deserialize(self, topic: str, headers: HeaderList, data: bytes) -> Any:
        assert dict(headers)["format"] == b"json" and topic == "t"
        return json.loads(data)


def test_what_one_serializes_the_other_deserializes_and_none_stays_none() -> None:
    cluster, wrapped = FakeCluster(partitions=1), Wrapped()

    async def scenario() -> list[ConsumedRecord]:
        async with producing(cluster, key_serializer=lambda key: b"%08d" % key, value_serializer=wrapped) as producer:
            await producer.send("t", {"n": 9_007_199_254_740_993}, key=7, headers=[("a", b"b")])
            await producer.send("t", None, key=7)
            await producer.send("t", [1], key=None)
        async with consuming(cluster, key_deserializer=int, value_deserializer=wrapped) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            return [record async for record in consumer]

    found = run(scenario())
    assert [(one.key, one.value) for one in found] == [(7, {"n": 9_007_199_254_740_993}), (7, None), (None, [1])]
    assert found[0].headers == (("a", b"b"), ("format", b"json"))
    assert wrapped.seen == [("t", {"n": 9_007_199_254_740_993}), ("t", [1])]  # it is not asked about None


def test_a_record_that_cannot_be_serialized_is_refused_and_told() -> None:
    cluster, told = FakeCluster(), list[tuple[RecordMetadata, Exception | None]]()

    async def scenario() -> None:
        async with producing(
            cluster, value_serializer=json.dumps, on_delivery=lambda *one: told.append(one)
        ) as producer:
            with pytest.raises(SerializationFailed, match="the value for topic 't' cannot be serialized: TypeError"):
                await producer.send("t", object(), partition=1)
            await producer.send("t", {}, partition=1)

    run(scenario())
    (refused, error), (stored, none) = told
    assert (refused.partition, refused.offset) == (1, -1) and isinstance(error, SerializationFailed)
    assert (stored.partition, stored.offset, none) == (1, 0, None)


def test_a_record_that_cannot_be_deserialized_is_named_and_can_be_passed() -> None:
    cluster = holding([b"1", b"2", b"x", b"4"])

    async def scenario() -> None:
        async with consuming(cluster, value_deserializer=int, max_poll_records=10) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            found = []
            while len(found) < 2:
                found += await consumer.poll()
            assert [one.value for one in found] == [1, 2]
            for _ in range(2):  # it stays there until the application goes on
                with pytest.raises(
                    DeserializationFailed, match="t-0 offset 2: the value cannot be deserialized"
                ) as got:
                    await consumer.poll()
                assert await consumer.position("t", 0) == 2
            error = got.value
            assert (error.topic, error.partition, error.offset, error.origin) == ("t", 0, 2, "value")
            assert error.record.value == b"x" and isinstance(error.__cause__, ValueError)
            await consumer.seek(error.topic, error.partition, error.offset + 1)
            assert [one.value for one in await consumer.poll()] == [4]
            assert consumer.metrics()["records-consumed-total"] == 3

    run(scenario())


@pytest.mark.parametrize(("chosen", "error"), [(2, None), (3, RequestFailed), (-1, RequestFailed), ("1", TypeError)])
def test_a_partitioner_chooses_where_none_was_given(chosen: Any, error: type[Exception] | None) -> None:
    cluster, asked = FakeCluster(), list[Any]()

    def partitioner(*given: Any) -> Any:
        asked.append(given)
        return chosen

    async def scenario() -> None:
        async with producing(cluster, partitioner=partitioner, key_serializer=str.encode) as producer:
            await (await producer.send("t", b"here", key="k", partition=1))
            if error is not None:
                with pytest.raises(error):
                    await producer.send("t", b"v", key="k")
            else:
                assert (await (await producer.send("t", b"v", key="k"))).partition == 2

    run(scenario())
    assert asked == [("t", b"k", b"v", 3)]


def test_deliveries_are_told_in_the_order_of_the_partition() -> None:
    """The answer to an older batch is lost: a younger one ends before it."""
    cluster, ended = FakeCluster(partitions=1), list[int]()
    order: list[int] = []

    def told(metadata: RecordMetadata, error: Exception | None) -> None:
        order.append(metadata.offset)

    async def scenario() -> None:
        async with producing(cluster, batch_size=100) as producer:
            await (await producer.send("t", b"0"))  # from now on several batches may be in flight
            cluster.fault_after(ProduceRequest, lambda _: OutcomeUnknown("the answer is lost"))
            deliveries = []
            for i in range(1, 5):
                delivery = await producer.send("t", b"%60d" % i, on_delivery=told)
                deliveries.append(asyncio.ensure_future(_awaited(delivery)))
                deliveries[-1].add_done_callback(lambda done: ended.append(done.result().offset))
            await producer.flush()
            assert order == [1, 2, 3, 4]  # told before `flush` returns
            await asyncio.gather(*deliveries)

    run(scenario())
    assert ended != sorted(ended)  # else nothing was overtaken here


async def _awaited(delivery: Any) -> Any:
    return await delivery


class Observer(ProducerInterceptor, ConsumerInterceptor):
    def __init__(self) -> None:
        self.sent: list[OutgoingRecord] = []
        self.acknowledged: list[tuple[int, Exception | None]] = []
        self.committed: list[Any] = []

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        self.sent.append(record)
        return replace(record, value=record.value + "!")

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        self.acknowledged.append((metadata.offset, error))

    def on_consume(self, records: list[ConsumedRecord]) -> list[ConsumedRecord]:
        return [one for one in records if one.value != "b!"]

    def on_commit(self, offsets: Any) -> None:
        self.committed.append({key: one.offset for key, one in offsets.items()})


class Failing:
    def on_send(self, record: Any) -> Any:
        raise ValueError("on_send")

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        raise ValueError("on_acknowledgement")

    def on_consume(self, records: Any) -> Any:
        raise ValueError("on_consume")

    def on_commit(self, offsets: Any) -> None:
        raise ValueError("on_commit")


def test_interceptors_see_and_change_and_a_failing_one_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    cluster, observer = GroupCluster(partitions=1), Observer()
    both: dict[str, Any] = {"interceptors": [Failing(), observer]}

    async def scenario() -> list[ConsumedRecord]:
        async with producing(cluster, value_serializer=str.encode, **both) as producer:
            for value in "abc":
                await producer.send("t", value)
        reads: dict[str, Any] = {"value_deserializer": bytes.decode, "group_id": "g"}
        async with consuming(cluster, **reads, **both) as consumer:
            await consumer.subscribe("t", stop="latest")
            found = [record async for record in consumer]
            await consumer.commit()
            assert await consumer.position("t", 0) == 3
            return found

    with caplog.at_level(logging.ERROR):
        found = run(scenario())
    assert [one.value for one in found] == ["a!", "c!"]
    assert [one.value for one in observer.sent] == ["a", "b", "c"]
    assert observer.acknowledged == [(0, None), (1, None), (2, None)]
    assert observer.committed[0] == {("t", 0): 3}
    said = {record.getMessage().split("'s ")[1].split()[0] for record in caplog.records}
    assert said == {"on_send", "on_acknowledgement", "on_consume", "on_commit"}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("ages_s", "reset", "first"),
    [
        ([7_200, 3_700, 3_500, 10], "by_duration:PT1H", 2),
        ([7_200, 3_700, 3_500, 10], "by_duration:P1D", 0),
        ([7_200, 3_700, 3_500, 10], "by_duration:PT5S", 4),  # all are older: the end
    ],
)
def test_a_reset_by_duration_begins_so_long_ago(ages_s: list[int], reset: str, first: int, grouped: bool) -> None:
    """KIP-1106, by the end of what is kept and by a group without offsets."""
    cluster = holding([b"v"] * 4, [WALL_MS - age * 1_000 for age in ages_s], GroupCluster)

    async def scenario() -> int:
        async with consuming(cluster, auto_offset_reset=reset, group_id="g" if grouped else "") as consumer:
            await (consumer.subscribe("t") if grouped else consumer.assign([("t", 0, 99)]))
            found = await consumer.poll(timeout_ms=10_000 if first < 4 else 300)
            return found[0].offset if found else cluster.topics["t"][0].end

    assert run(scenario()) == first


@pytest.mark.parametrize(
    ("text", "want_ms"),
    [("PT1H", 3_600_000), ("P2DT12H", 216_000_000), ("pt1.25s", 1_250), ("PT0S", 0), ("P1D", 86_400_000)],
)
def test_durations_of_iso_8601(text: str, want_ms: int) -> None:
    assert parse_duration_ms(text) == want_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "-PT1H", "P1Y", "PT1H2", "P1DT", "PT٣S"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match="not an ISO 8601 duration"):
        consuming(FakeCluster(), auto_offset_reset=f"by_duration:{text}")


@pytest.mark.parametrize(
    ("option", "given", "says"),
    [
        ("value_deserializer", "org.Example", "must be a function, or an object with a method deserialize"),
        ("interceptors", "org.Example", "must be a list of objects"),
    ],
)
def test_names_of_classes_are_refused(option: str, given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        consuming(FakeCluster(), **{option: given})


# --- the blocking form ---


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    cluster = FakeCluster(partitions=1)
    monkeypatch.setattr(edge, "producer", lambda config, **options: producing(cluster, **{**config, **options}))
    monkeypatch.setattr(edge, "consumer", lambda config, **options: consuming(cluster, **{**config, **options}))
    yield cluster


def test_blocking_clients_convert_in_the_callers_thread(cluster: FakeCluster) -> None:
    threads: list[int] = []
    told: list[int] = []

    def number(data: Any) -> Any:
        threads.append(threading.get_ident())
        return int(data) if isinstance(data, bytes) else b"%d" % data

    with Producer(value_serializer=number) as producer:
        for i in range(4):
            producer.send("t", i, on_delivery=lambda metadata, error: told.append(metadata.offset))
        with pytest.raises(SerializationFailed):
            producer.send("t", "x")  # here, and not in a future
        producer.send("t", None)
        producer.flush()
        assert told == [0, 1, 2, 3]
        assert producer.metrics()["record-send-total"] == 5
    cluster.topics["t"][0].append(encode_batch([Record(offset=0, timestamp_ms=5, key=None, value=b"x")]))
    with Consumer(value_deserializer=number) as consumer:
        consumer.assign([("t", 0, "earliest")], stop="latest")
        found = []
        with pytest.raises(DeserializationFailed, match="t-0 offset 5") as got:
            for record in consumer:
                found.append(record.value)
        assert found == [0, 1, 2, 3, None] and consumer.position("t", 0) == 5
        consumer.seek("t", 0, got.value.offset + 1)
        assert list(consumer) == [] and consumer.finished
    assert set(threads) == {threading.get_ident()}


def test_a_callback_may_send(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the handover is full: the loop would wait for itself."""
    monkeypatch.setattr("quorumlog.client.handover.producer.HANDOVER_LIMIT", 1)
    with Producer() as producer:
        producer.send("t", b"first", on_delivery=lambda *_: [producer.send("t", b"more") for _ in range(3)]).result(5)
        producer.flush(5)
    assert sorted(cluster.values("t", 0)) == [b"first", b"more", b"more", b"more"]  # type: ignore[type-var]


def test_traces_travel_in_w3c_headers() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from quorumlog.client.plugins.tracing import TracingConsumerInterceptor, TracingProducerInterceptor

    exporter, provider, cluster = InMemorySpanExporter(), TracerProvider(), FakeCluster(partitions=1)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def scenario() -> list[ConsumedRecord]:
        async with producing(cluster, interceptors=[TracingProducerInterceptor(provider)]) as producer:
            with provider.get_tracer("test").start_as_current_span("order"):
                for value in (b"1", b"2"):
                    await producer.send("t", value, headers={"own": b"kept", "traceparent": b"replaced"})
        async with consuming(cluster, interceptors=[TracingConsumerInterceptor(provider)]) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            return [record async for record in consumer]

    found = run(scenario())
    spans = {span.name: span for span in exporter.get_finished_spans()}
    created, received = spans["create t"], spans["receive t"]
    assert created.parent is not None and created.parent.span_id == spans["order"].context.span_id
    assert [name for name, _ in found[0].headers] == ["own", "traceparent"]
    linked = [f"00-{link.context.trace_id:032x}-{link.context.span_id:016x}".encode() for link in received.links]
    sent = [(dict(one.headers)["traceparent"] or b"").rpartition(b"-")[0] for one in found]
    assert linked and linked == sent[: len(linked)]


class Forgetful:
    def on_send(self, record: OutgoingRecord) -> None:
        """Without its `return`."""

    def on_consume(self, records: list[Any]) -> None:
        """Likewise."""


def _cancelled(*_: Any) -> Any:
    """As `result()` of a future that was cancelled."""
    raise asyncio.CancelledError


class Cancelling:
    on_send = on_acknowledgement = on_consume = on_commit = staticmethod(_cancelled)


@pytest.mark.parametrize("interceptor", [Forgetful(), Cancelling()])
def test_an_interceptor_that_returns_nothing_or_was_cancelled_is_passed_over(
    interceptor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = FakeCluster(partitions=1)

    async def scenario() -> list[Any]:
        async with producing(cluster, interceptors=[interceptor], on_delivery=_cancelled) as producer:
            for value in (b"1", b"2"):
                await (await producer.send("t", value))
        async with consuming(cluster, interceptors=[interceptor]) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            return [record.value async for record in consumer]

    assert run(scenario()) == [b"1", b"2"]
    assert "is passed over" in caplog.text and "on_delivery failed" in caplog.text


def test_a_deserializer_that_was_cancelled_is_an_error_of_the_record() -> None:
    cluster = holding([b"1"])

    async def scenario() -> None:
        async with consuming(cluster, value_deserializer=_cancelled) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            with pytest.raises(DeserializationFailed, match="t-0"):
                await consumer.poll(1_000)
        async with producing(cluster, value_serializer=_cancelled) as producer:
            with pytest.raises(SerializationFailed):
                await producer.send("t", b"x")

    run(scenario())


class Waits(Wrapped):
    """As a serializer of a registry: its first call waits, here until the event loop lets it go on."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.answer, self.known = threading.Event(), threading.Event(), threading.Event()

    def is_prepared(self, topic: str, headers: HeaderList, data: Any) -> bool:
        return self.known.is_set()

    def serialize(self, topic: str, headers: HeaderList, data: Any) -> bytes:
        self._wait()
        return super().serialize(topic, headers, data)

    def deserialize(self, topic: str, headers: HeaderList, data: bytes) -> Any:
        self._wait()
        return json.loads(data)

    def _wait(self) -> None:
        self.began.set()
        assert self.answer.wait(20), "the event loop waits for the serializer"
        self.known.set()

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.began.wait, 20)


def test_a_serializer_that_waits_holds_up_no_loop_and_no_record_overtakes_it() -> None:
    cluster, waits = FakeCluster(partitions=1), Waits()

    async def scenario() -> list[Any]:
        async with producing(cluster, value_serializer=waits) as producer:
            await producer.partition_count("t", 1_000)  # now it knows the topic, and waits for nothing else
            sent = [asyncio.create_task(producer.send("t", number)) for number in range(3)]
            await waits.has_begun()
            waits.answer.set()
            assert waits.known.wait(20)  # holds up the loop, so that those that waited have not gone on yet
            await producer.send("t", 3)
            await asyncio.gather(*sent)
        async with consuming(cluster) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            return [record.value async for record in consumer]

    assert asyncio.run(scenario()) == [b"0", b"1", b"2", b"3"]


def test_a_poll_that_is_cancelled_while_a_deserializer_waits_loses_nothing() -> None:
    cluster, waits = holding([b"1", b"2"]), Waits()

    async def scenario() -> list[Any]:
        async with consuming(cluster, value_deserializer=waits) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            poll = asyncio.create_task(consumer.poll())
            await waits.has_begun()
            poll.cancel()
            with pytest.raises(asyncio.CancelledError):
                await poll
            waits.answer.set()
            return [record.value async for record in consumer]

    assert asyncio.run(scenario()) == [1, 2]
