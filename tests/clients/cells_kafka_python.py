"""kafka-python: producers (idempotent by default) and admin clients with their defaults, consumers by assignment."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import client_matrix as matrix
import kafka
from client_matrix import Client, Place
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError

TIMEOUT_S = 15.0
START_MS = time.time_ns() // 1_000_000 - 3_600_000  # what is a week old may be deleted while a cell reads it


@contextmanager
def admin(place: Place) -> Iterator[Any]:
    made = KafkaAdminClient(bootstrap_servers=place.servers)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def producer(place: Place, **settings: Any) -> Iterator[Any]:
    made = KafkaProducer(bootstrap_servers=place.servers, **settings)
    try:
        yield made
    finally:
        made.close(TIMEOUT_S)


@contextmanager
def consumer(place: Place) -> Iterator[Any]:
    made = KafkaConsumer(bootstrap_servers=place.servers, enable_auto_commit=False)
    partition = TopicPartition(place.topic, 0)
    made.assign([partition])
    made.seek_to_beginning(partition)
    try:
        yield made
    finally:
        made.close()


def produce(place: Place, values: list[bytes], **settings: Any) -> list[int]:
    with producer(place, **settings) as made:
        sent = [made.send(place.topic, value) for value in values]
        made.flush(TIMEOUT_S)
        return [future.get(TIMEOUT_S).offset for future in sent]


def read(made: Any, count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count and time.monotonic() < deadline:
        for records in made.poll(500, max_records=count - len(found)).values():
            found += records
    assert len(found) == count
    return found


def metadata(place: Place) -> None:
    with admin(place) as client:
        found = client.describe_cluster()
        assert len(found["brokers"]) == 3
        assert place.topic in client.list_topics()
        (topic,) = client.describe_topics([place.topic])
        assert len(topic["partitions"]) == 1


def create_topic(place: Place) -> None:
    topic = NewTopic(f"{place.topic}-made", 2, 3)
    with admin(place) as client:
        client.create_topics([topic])
        try:
            client.create_topics([topic])
            raise AssertionError("made twice")
        except TopicAlreadyExistsError:
            pass
        client.delete_topics([topic.name])


def add_partitions(place: Place) -> None:
    with admin(place) as client:
        client.create_partitions({place.topic: NewPartitions(3)})
        deadline = time.monotonic() + TIMEOUT_S
        while len(client.describe_topics([place.topic])[0]["partitions"]) != 3:
            assert time.monotonic() < deadline


def settings_text(client: Any, place: Place) -> str:
    return str(client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, place.topic)], config_filter="all"))


def describe_configs(place: Place) -> None:
    with admin(place) as client:
        assert "min.insync.replicas" in settings_text(client, place)


def replace_configs(place: Place) -> None:
    """The client itself fills in the earlier settings, so nothing is removed."""
    with admin(place) as client:
        resource = ConfigResource(ConfigResourceType.TOPIC, place.topic, {"retention.ms": "3600007"})
        client.alter_configs([resource], incremental=False)
        deadline = time.monotonic() + TIMEOUT_S
        while "3600007" not in settings_text(client, place):
            assert time.monotonic() < deadline


def alter_configs(place: Place) -> None:
    with admin(place) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, place.topic, {"retention.ms": "3600007"})])
        deadline = time.monotonic() + TIMEOUT_S
        while "3600007" not in settings_text(client, place):
            assert time.monotonic() < deadline


def produce_defaults(place: Place) -> None:
    assert KafkaProducer.DEFAULT_CONFIG["enable_idempotence"]
    assert produce(place, [b"one", b"two"]) == [0, 1]


def no_acks(place: Place) -> None:
    with producer(place, acks=0, enable_idempotence=False) as made:
        made.send(place.topic, b"value")
        made.flush(TIMEOUT_S)
    with consumer(place) as made:
        assert read(made, 1)[0].value == b"value"


def compressed(codec: str) -> Any:
    def cell(place: Place) -> None:
        values = [b"value %d" % number * 20 for number in range(100)]
        produce(place, values, compression_type=codec, linger_ms=50)
        with consumer(place) as made:
            assert [record.value for record in read(made, len(values))] == values

    return cell


def whole_record(place: Place) -> None:
    headers = [("first", b"1"), ("empty", b"")]
    with producer(place) as made:
        made.send(place.topic, b"value", b"key", headers=headers, timestamp_ms=START_MS).get(TIMEOUT_S)
        made.send(place.topic, None, b"key").get(TIMEOUT_S)
    with consumer(place) as made:
        first, second = read(made, 2)
    assert (first.key, first.value, list(first.headers), first.timestamp) == (b"key", b"value", headers, START_MS)
    assert second.value is None


def large(place: Place) -> None:
    value = bytes(900_000)
    produce(place, [value])
    with consumer(place) as made:
        assert read(made, 1)[0].value == value


def consume(place: Place) -> None:
    values = [b"%d" % number for number in range(100)]
    produce(place, values)
    with consumer(place) as made:
        assert [record.value for record in read(made, 100)] == values


def seek(place: Place) -> None:
    produce(place, [b"0", b"1", b"2"])
    with consumer(place) as made:
        read(made, 3)
        made.seek(TopicPartition(place.topic, 0), 1)
        assert read(made, 1)[0].value == b"1"


def ends(place: Place) -> None:
    produce(place, [b"0", b"1"])
    partition = TopicPartition(place.topic, 0)
    with consumer(place) as made:
        assert made.beginning_offsets([partition]) == {partition: 0}
        assert made.end_offsets([partition]) == {partition: 2}


def by_time(place: Place) -> None:
    with producer(place) as made:
        for number in range(3):
            made.send(place.topic, b"value", timestamp_ms=START_MS + 1_000 * number).get(TIMEOUT_S)
    partition = TopicPartition(place.topic, 0)
    with consumer(place) as made:
        assert made.offsets_for_times({partition: START_MS + 500})[partition].offset == 1


def delete_records(place: Place) -> None:
    produce(place, [b"0", b"1", b"2"])
    with admin(place) as client:
        client.delete_records({TopicPartition(place.topic, 0): 2})
    with consumer(place) as made:
        assert read(made, 1)[0].offset == 2


def log_dirs(place: Place) -> None:
    with admin(place) as client:
        assert place.topic in str(client.describe_log_dirs())


def quorum(place: Place) -> None:
    with admin(place) as client:
        assert "leader_id" in str(client.describe_metadata_quorum())


@contextmanager
def member(place: Place) -> Iterator[Any]:
    made = KafkaConsumer(
        place.topic, bootstrap_servers=place.servers, group_id=place.topic, auto_offset_reset="earliest"
    )
    try:
        yield made
    finally:
        made.close()  # commits, and leaves the group


def group(place: Place) -> None:
    produce(place, [b"0", b"1"])
    with member(place) as made:
        assert [record.value for record in read(made, 2)] == [b"0", b"1"]
    produce(place, [b"2"])
    with member(place) as made:
        assert [record.value for record in read(made, 1)] == [b"2"]
        made.commit()
        assert made.committed(TopicPartition(place.topic, 0)) == 3


def list_groups(place: Place) -> None:
    produce(place, [b"0"])
    with admin(place) as client:
        with member(place) as made:
            read(made, 1)
            assert "Stable" in str(client.describe_groups([place.topic]))
        assert place.topic in str(client.list_groups())
        client.delete_groups([place.topic])
        assert place.topic not in str(client.list_groups())


KAFKA_PYTHON = Client(
    "kafka-python",
    lambda: str(kafka.__version__),
    lambda: "",
    {
        matrix.METADATA: metadata,
        matrix.CREATE_TOPIC: create_topic,
        matrix.ADD_PARTITIONS: add_partitions,
        matrix.DESCRIBE_CONFIGS: describe_configs,
        matrix.ALTER_CONFIGS: alter_configs,
        matrix.REPLACE_CONFIGS: replace_configs,
        matrix.PRODUCE: produce_defaults,
        matrix.IDEMPOTENT: produce_defaults,
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
        matrix.LOG_DIRS: log_dirs,
        matrix.QUORUM: quorum,
        matrix.GROUP: group,
        matrix.LIST_GROUPS: list_groups,
    },
)
