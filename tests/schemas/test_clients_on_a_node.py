"""Both client forms with serializers of a registry, over a real node; a slow registry holds up no event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from http_registry import Document, HttpRegistry, serving
from messages import Line, Order

from quorumlog.client.asynchronous import AsyncConsumer, AsyncProducer
from quorumlog.client.blocking import Consumer, Producer
from quorumlog.client.errors import DeserializationFailed
from quorumlog.schemas import (
    AvroSerializer,
    BadData,
    JsonSerializer,
    ProtobufSerializer,
    SchemaDeserializer,
    SchemaRegistry,
)
from tests.scenarios.one_node import LANE, RealNode

FIELDS = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]
AVRO = json.dumps({"type": "record", "name": "shop.Order", "fields": FIELDS})
JSON = json.dumps({"title": "Order", "type": "object", "required": ["id"]})
VALUE = {"id": 7, "note": "ü"}
LATE_S = 20.0


class SlowRegistry(HttpRegistry):
    """Answers once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def answer(self, method: str, target: str, body: Document | None) -> tuple[int, Document]:
        self.is_asked.set()
        assert self.may_answer.wait(LATE_S), "the event loop waits for the registry"
        return super().answer(method, target, body)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("schemas"))
    yield made
    made.close()


@pytest.fixture
def servers(node: RealNode) -> dict[str, Any]:
    return {"bootstrap_servers": str(node.node.addresses[LANE])}


@pytest.fixture
def http() -> Iterator[HttpRegistry]:
    with serving(HttpRegistry()) as made:
        yield made


@pytest.mark.parametrize("form", ["avro", "json", "protobuf"])
def test_what_the_blocking_form_wrote_the_asynchronous_one_reads_and_the_other_way_round(
    node: RealNode, servers: dict[str, Any], http: HttpRegistry, form: str
) -> None:
    registry, topic = SchemaRegistry(http.url), f"orders-{form}"
    order = Order(id=7, lines=[Line(article="bolt")])
    value, serializer = {
        "avro": (VALUE, AvroSerializer(registry, AVRO)),
        "json": (VALUE, JsonSerializer(registry, JSON)),
        "protobuf": (order, ProtobufSerializer(registry, Order)),
    }[form]
    reads: dict[str, Any] = {"message": Order} if form == "protobuf" else {}

    def blocking() -> list[Any]:
        with Producer(**servers, value_serializer=serializer) as producer:
            producer.send(topic, value).result(timeout_s=LATE_S)
        options = {**servers, "value_deserializer": SchemaDeserializer(SchemaRegistry(http.url), **reads)}
        with Consumer(**options) as consumer:
            consumer.assign_topic(topic, stop="latest")
            return [record.value for record in consumer]

    async def asynchronous() -> list[Any]:
        async with AsyncProducer(**servers, value_serializer=serializer) as producer:
            await (await producer.send(topic, value))
        options = {**servers, "value_deserializer": SchemaDeserializer(SchemaRegistry(http.url), **reads)}
        async with AsyncConsumer(**options) as consumer:
            await consumer.assign_topic(topic, stop="latest")
            return [record.value async for record in consumer]

    assert node.do(asyncio.to_thread(blocking)) == [value]
    assert node.do(asynchronous()) == [value, value]


def test_an_event_loop_goes_on_while_the_registry_is_slow(node: RealNode, servers: dict[str, Any]) -> None:
    async def scenario(slow: SlowRegistry) -> Any:
        """The loop lets the registry answer: a client that blocked it would wait for ever."""

        async def let_answer() -> None:
            assert await asyncio.to_thread(slow.is_asked.wait, LATE_S)
            slow.may_answer.set()

        registry = SchemaRegistry(slow.url)
        async with AsyncProducer(**servers, value_serializer=AvroSerializer(registry, AVRO)) as producer:
            sent, _ = await asyncio.gather(producer.send("slow", VALUE), let_answer())
            await sent
        slow.is_asked.clear()
        slow.may_answer.clear()
        options = {**servers, "value_deserializer": SchemaDeserializer(SchemaRegistry(slow.url))}
        async with AsyncConsumer(**options) as consumer:
            await consumer.assign_topic("slow")
            polled, _ = await asyncio.gather(consumer.poll(timeout_ms=10_000), let_answer())
            return [record.value for record in polled]

    with serving(SlowRegistry()) as slow:
        assert isinstance(slow, SlowRegistry)
        assert node.do(scenario(slow)) == [VALUE]


def test_a_record_that_is_damaged_is_named_and_the_next_one_can_be_read(
    node: RealNode, servers: dict[str, Any], http: HttpRegistry
) -> None:
    write = AvroSerializer(SchemaRegistry(http.url), AVRO)
    whole = write.serialize("damaged", [], VALUE)
    assert whole is not None

    async def scenario() -> Any:
        async with AsyncProducer(**servers) as producer:
            for data in (whole, whole[:-1], whole):
                await (await producer.send("damaged", data, partition=0))
        options = {**servers, "value_deserializer": SchemaDeserializer(SchemaRegistry(http.url))}
        async with AsyncConsumer(**options) as consumer:
            await consumer.assign([("damaged", 0, "earliest")], stop="latest")
            first = await consumer.poll(timeout_ms=10_000)
            with pytest.raises(DeserializationFailed, match=r"damaged-0 .*offset 1") as raised:
                await consumer.poll(timeout_ms=10_000)
            assert isinstance(raised.value.__cause__, BadData)
            await consumer.seek("damaged", 0, 2)
            return [record.value for record in (*first, *await consumer.poll(timeout_ms=10_000))]

    assert node.do(scenario()) == [VALUE, VALUE]
