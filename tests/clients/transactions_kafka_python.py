"""Transactions of kafka-python. Its consumers read uncommitted records unless they are told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import client_matrix as matrix
import pytest
from cells_kafka_python import TIMEOUT_S, admin, produce, producer, read
from client_matrix import Place
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import InvalidProducerEpochError, ProducerFencedError
from kafka.structs import OffsetAndMetadata


@contextmanager
def transactional(place: Place) -> Iterator[Any]:
    with producer(place, transactional_id=place.topic) as made:
        made.init_transactions()
        yield made


@contextmanager
def reader(place: Place, isolation_level: str = "read_committed") -> Iterator[Any]:
    made = KafkaConsumer(bootstrap_servers=place.servers, enable_auto_commit=False, isolation_level=isolation_level)
    partition = TopicPartition(place.topic, 0)
    made.assign([partition])
    made.seek_to_beginning(partition)
    try:
        yield made
    finally:
        made.close()


def values(made: Any, count: int) -> list[bytes]:
    return [record.value for record in read(made, count)]


def transaction(place: Place) -> None:
    with transactional(place) as made, reader(place) as committed:
        for value, commits in ((b"a", True), (b"b", False), (b"c", True), (b"d", False), (b"e", True)):
            made.begin_transaction()
            made.send(place.topic, value).get(TIMEOUT_S)
            if commits:
                made.commit_transaction()
            else:
                made.abort_transaction()
        assert values(committed, 3) == [b"a", b"c", b"e"]
        made.begin_transaction()
        made.send(place.topic, b"f").get(TIMEOUT_S)
        produce(place, [b"plain"])
        assert committed.poll(1_000) == {}, "it is open, and what follows waits"
        made.commit_transaction()
        assert values(committed, 2) == [b"f", b"plain"]
    with reader(place, "read_uncommitted") as everything:
        assert values(everything, 7) == [b"a", b"b", b"c", b"d", b"e", b"f", b"plain"]


def transform(place: Place) -> None:
    """The first try is aborted: neither its records nor its offsets are seen."""
    out, partition = Place(place.servers, f"{place.topic}-out"), TopicPartition(place.topic, 0)
    with admin(place) as client:
        client.create_topics([NewTopic(out.topic, 1, 3)])
    produce(place, [b"1", b"2", b"3"])
    source = KafkaConsumer(
        place.topic, bootstrap_servers=place.servers, group_id=place.topic, auto_offset_reset="earliest",
        enable_auto_commit=False, isolation_level="read_committed",
    )  # fmt: skip
    try:
        with transactional(place) as made:
            for commits in (False, True):
                found = read(source, 3)
                made.begin_transaction()
                for record in found:
                    made.send(out.topic, record.value * 2)
                offsets = {partition: OffsetAndMetadata(source.position(partition), "", -1)}
                made.send_offsets_to_transaction(offsets, source.group_metadata())
                if commits:
                    made.commit_transaction()
                else:
                    made.abort_transaction()
                    assert source.committed(partition) is None
                    source.seek(partition, 0)
            assert source.committed(partition) == 3
    finally:
        source.close()
    with reader(out) as sink:
        assert values(sink, 3) == [b"11", b"22", b"33"]
        assert sink.poll(1_000) == {}
    with admin(place) as client:
        client.delete_topics([out.topic])


def fencing(place: Place) -> None:
    """The second producer of an id ends the transaction of the first, which cannot go on."""
    with transactional(place) as old:
        old.begin_transaction()
        old.send(place.topic, b"of the old").get(TIMEOUT_S)
        with transactional(place) as new:
            with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
                old.commit_transaction()
            new.begin_transaction()
            new.send(place.topic, b"of the new").get(TIMEOUT_S)
            new.commit_transaction()
    with reader(place) as committed:
        assert values(committed, 1) == [b"of the new"]


CELLS = {matrix.TRANSACTION: transaction, matrix.TRANSFORM: transform, matrix.FENCING: fencing}
