"""confluent-kafka, which is librdkafka: producers and admin clients with their defaults, consumers by assignment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import client_matrix as matrix
import confluent_kafka
from client_matrix import Client, Place
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

TIMEOUT_S = 15.0
START_MS = time.time_ns() // 1_000_000 - 3_600_000  # what is a week old may be deleted while a cell reads it


def admin(place: Place) -> Any:
    """Keep the client until its answers arrive: when it is collected, its calls are lost."""
    return AdminClient({"bootstrap.servers": place.servers})


def done(futures: Any) -> Any:
    """The result of a call about a single thing."""
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def produce(place: Place, values: list[bytes], settings: dict[str, Any] | None = None) -> list[int]:
    """The records' offsets, in the order of the values."""
    offsets: list[int] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = Producer({"bootstrap.servers": place.servers, **(settings or {})})
    for value in values:
        producer.produce(place.topic, value, on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0
    return offsets


@contextmanager
def consumer(place: Place, offset: int = 0) -> Iterator[Any]:
    made = Consumer({"bootstrap.servers": place.servers, "group.id": "none", "enable.auto.commit": False})
    made.assign([TopicPartition(place.topic, 0, offset)])
    try:
        yield made
    finally:
        made.close()


def read(made: Any, count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count and time.monotonic() < deadline:
        found += made.consume(count - len(found), 0.5)
    assert [str(message.error()) for message in found if message.error()] == []
    assert len(found) == count
    return found


def metadata(place: Place) -> None:
    client = admin(place)
    found = client.list_topics(timeout=TIMEOUT_S)
    assert len(found.brokers) == 3
    assert found.controller_id in found.brokers
    assert len(found.topics[place.topic].partitions[0].replicas) == 3
    described = client.describe_cluster().result(TIMEOUT_S)
    assert len(described.nodes) == 3


def create_topic(place: Place) -> None:
    name = f"{place.topic}-made"
    client = admin(place)
    done(client.create_topics([NewTopic(name, 2)]))
    try:
        done(client.create_topics([NewTopic(name, 2)]))
        raise AssertionError("made twice")
    except KafkaException as error:
        assert error.args[0].code() == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS
    done(client.delete_topics([name]))


def add_partitions(place: Place) -> None:
    client = admin(place)
    done(client.create_partitions([NewPartitions(place.topic, 3)]))
    deadline = time.monotonic() + TIMEOUT_S
    while len(client.list_topics(place.topic, TIMEOUT_S).topics[place.topic].partitions) != 3:
        assert time.monotonic() < deadline


def settings(place: Place) -> dict[str, Any]:
    client = admin(place)
    found: dict[str, Any] = done(client.describe_configs([topic_resource(place)]))
    return found


def topic_resource(place: Place, **arguments: Any) -> Any:
    return ConfigResource(ConfigResource.Type.TOPIC, place.topic, **arguments)


def describe_configs(place: Place) -> None:
    found = settings(place)
    assert found["min.insync.replicas"].value == "2"
    assert found["retention.ms"].is_default


def replace_configs(place: Place) -> None:
    """AlterConfigs, which is deprecated. The second request removes the setting that it does not name."""
    client = admin(place)
    for key in ("retention.ms", "segment.ms"):
        done(client.alter_configs([topic_resource(place, set_config={key: "3600007"})]))
        deadline = time.monotonic() + TIMEOUT_S
        while [name for name, told in settings(place).items() if told.value == "3600007"] != [key]:
            assert time.monotonic() < deadline  # the asked broker may lag


def alter_configs(place: Place) -> None:
    entry = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    client = admin(place)
    done(client.incremental_alter_configs([topic_resource(place, incremental_configs=[entry])]))
    deadline = time.monotonic() + TIMEOUT_S
    while settings(place)["retention.ms"].value != "3600000":  # the asked broker may lag
        assert time.monotonic() < deadline


def produce_defaults(place: Place) -> None:
    assert produce(place, [b"one", b"two"]) == [0, 1]


def idempotent(place: Place) -> None:
    assert produce(place, [b"one", b"two"], {"enable.idempotence": True}) == [0, 1]


def no_acks(place: Place) -> None:
    produce(place, [b"value"], {"acks": 0})
    with consumer(place) as made:
        assert read(made, 1)[0].value() == b"value"


def compressed(codec: str) -> Any:
    def cell(place: Place) -> None:
        values = [b"value %d" % number * 20 for number in range(100)]
        produce(place, values, {"compression.type": codec, "linger.ms": 50})
        with consumer(place) as made:
            assert [message.value() for message in read(made, len(values))] == values

    return cell


def whole_record(place: Place) -> None:
    producer = Producer({"bootstrap.servers": place.servers})
    headers = [("first", b"1"), ("empty", b""), ("none", None)]
    producer.produce(place.topic, b"value", b"key", timestamp=START_MS, headers=headers)
    producer.produce(place.topic, None, b"key")
    assert producer.flush(TIMEOUT_S) == 0
    with consumer(place) as made:
        first, second = read(made, 2)
    assert (first.key(), first.value(), first.headers()) == (b"key", b"value", headers)
    assert first.timestamp() == (confluent_kafka.TIMESTAMP_CREATE_TIME, START_MS)
    assert second.value() is None


def large(place: Place) -> None:
    value = bytes(900_000)
    produce(place, [value])
    with consumer(place) as made:
        assert read(made, 1)[0].value() == value


def consume(place: Place) -> None:
    values = [b"%d" % number for number in range(100)]
    produce(place, values)
    with consumer(place) as made:
        assert [message.value() for message in read(made, 100)] == values


def seek(place: Place) -> None:
    produce(place, [b"0", b"1", b"2"])
    with consumer(place) as made:
        read(made, 3)
        made.seek(TopicPartition(place.topic, 0, 1))
        assert read(made, 1)[0].value() == b"1"


def ends(place: Place) -> None:
    produce(place, [b"0", b"1"])
    with consumer(place) as made:
        assert made.get_watermark_offsets(TopicPartition(place.topic, 0), TIMEOUT_S) == (0, 2)
    client = admin(place)
    found = done(client.list_offsets({TopicPartition(place.topic, 0): OffsetSpec.latest()}))
    assert found.offset == 2


def by_time(place: Place) -> None:
    producer = Producer({"bootstrap.servers": place.servers})
    for number in range(3):
        producer.produce(place.topic, b"value", timestamp=START_MS + 1_000 * number)
        assert producer.flush(TIMEOUT_S) == 0
    with consumer(place) as made:
        (found,) = made.offsets_for_times([TopicPartition(place.topic, 0, START_MS + 500)], TIMEOUT_S)
    assert found.offset == 1


def delete_records(place: Place) -> None:
    produce(place, [b"0", b"1", b"2"])
    client = admin(place)
    assert done(client.delete_records([TopicPartition(place.topic, 0, 2)])).low_watermark == 2
    with consumer(place, confluent_kafka.OFFSET_BEGINNING) as made:
        assert read(made, 1)[0].offset() == 2


@contextmanager
def member(place: Place, **more: Any) -> Iterator[Any]:
    settings = {"bootstrap.servers": place.servers, "group.id": place.topic, "auto.offset.reset": "earliest"}
    made = Consumer({**settings, **more})
    made.subscribe([place.topic])
    try:
        yield made
    finally:
        made.close()  # commits, and leaves the group


def group(place: Place, **more: Any) -> None:
    produce(place, [b"0", b"1"])
    with member(place, **more) as made:
        assert [message.value() for message in read(made, 2)] == [b"0", b"1"]
    produce(place, [b"2"])
    with member(place, **more) as made:
        assert [message.value() for message in read(made, 1)] == [b"2"]
        made.commit(asynchronous=False)
        (found,) = made.committed([TopicPartition(place.topic, 0)], TIMEOUT_S)
        assert found.offset == 3


def list_groups(place: Place) -> None:
    produce(place, [b"0"])
    client = admin(place)
    with member(place) as made:
        read(made, 1)
        described = done(client.describe_consumer_groups([place.topic]))
        assert (described.state.name, len(described.members)) == ("STABLE", 1)
    listed = client.list_consumer_groups().result(TIMEOUT_S)
    assert place.topic in [one.group_id for one in listed.valid] and listed.errors == []
    assert done(client.delete_consumer_groups([place.topic])) is None
    assert place.topic not in [one.group_id for one in client.list_consumer_groups().result(TIMEOUT_S).valid]


def new_group(place: Place) -> None:
    """Members come and go while others read; a pattern is resolved by the broker."""
    protocol = {"group.protocol": "consumer"}
    group(place, **protocol)
    client = admin(place)
    done(client.create_partitions([NewPartitions(place.topic, 2)]))
    with member(place, **protocol, **{"group.remote.assignor": "range"}) as stays:
        with member(place, **protocol) as leaves:
            until(lambda: [len(made.assignment()) for made in (stays, leaves)] == [1, 1], stays, leaves)
            described = done(client.describe_consumer_groups([place.topic]))
            assert (described.state.name, described.type.name, len(described.members)) == ("STABLE", "CONSUMER", 2)
        stays.subscribe([f"^{place.topic[:-1]}.$"])
        until(lambda: len(stays.assignment()) == 2, stays)
    assert done(client.delete_consumer_groups([place.topic])) is None


def until(condition: Callable[[], bool], *members: Any) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        for made in members:
            message = made.poll(0.1)
            assert message is None or not message.error(), message.error()


CONFLUENT = Client(
    "confluent-kafka",
    lambda: f"{confluent_kafka.version()} (librdkafka {confluent_kafka.libversion()[0]})",
    lambda: "",
    {
        matrix.METADATA: metadata,
        matrix.CREATE_TOPIC: create_topic,
        matrix.ADD_PARTITIONS: add_partitions,
        matrix.DESCRIBE_CONFIGS: describe_configs,
        matrix.ALTER_CONFIGS: alter_configs,
        matrix.REPLACE_CONFIGS: replace_configs,
        matrix.PRODUCE: produce_defaults,
        matrix.IDEMPOTENT: idempotent,
        matrix.NO_ACKS: no_acks,
        matrix.GZIP: compressed("gzip"),
        matrix.SNAPPY: compressed("snappy"),
        matrix.LZ4: compressed("lz4"),
        matrix.ZSTD: compressed("zstd"),
        matrix.WHOLE_RECORD: whole_record,
        matrix.LARGE: large,
        matrix.CONSUME: consume,
        matrix.SEEK: seek,
        matrix.ENDS: ends,
        matrix.BY_TIME: by_time,
        matrix.DELETE_RECORDS: delete_records,
        matrix.GROUP: group,
        matrix.LIST_GROUPS: list_groups,
        matrix.NEW_GROUP: new_group,
    },
)
