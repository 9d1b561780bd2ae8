"""Transactions of confluent-kafka, which is librdkafka. Its consumers read committed records by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import client_matrix as matrix
from cells_confluent import TIMEOUT_S, admin, done, member, produce, read
from client_matrix import Place
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic


def transactional(place: Place, name: str = "") -> Any:
    made = Producer({"bootstrap.servers": place.servers, "transactional.id": name or place.topic})
    made.init_transactions(TIMEOUT_S)
    return made


@contextmanager
def reader(place: Place, **more: Any) -> Iterator[Any]:
    made = Consumer({"bootstrap.servers": place.servers, "group.id": "none", "enable.auto.commit": False, **more})
    made.assign([TopicPartition(place.topic, 0, 0)])
    try:
        yield made
    finally:
        made.close()


def values(made: Any, count: int) -> list[bytes]:
    return [message.value() for message in read(made, count)]


def transaction(place: Place) -> None:
    made = transactional(place)
    for value, commits in ((b"a", True), (b"b", False), (b"c", True), (b"d", False), (b"e", True)):
        made.begin_transaction()
        made.produce(place.topic, value)
        if commits:
            made.commit_transaction(TIMEOUT_S)
        else:
            made.flush(TIMEOUT_S)
            made.abort_transaction(TIMEOUT_S)
    with reader(place) as committed:
        assert values(committed, 3) == [b"a", b"c", b"e"]
        made.begin_transaction()
        made.produce(place.topic, b"f")
        assert made.flush(TIMEOUT_S) == 0
        produce(place, [b"plain"])
        assert committed.consume(1, 1.0) == [], "it is open, and what follows waits"
        made.commit_transaction(TIMEOUT_S)
        assert values(committed, 2) == [b"f", b"plain"]
    with reader(place, **{"isolation.level": "read_uncommitted"}) as everything:
        assert values(everything, 7) == [b"a", b"b", b"c", b"d", b"e", b"f", b"plain"]


def transform(place: Place) -> None:
    """The first try is aborted: neither its records nor its offsets are seen."""
    out = Place(place.servers, f"{place.topic}-out")
    client = admin(place)
    done(client.create_topics([NewTopic(out.topic, 1)]))
    produce(place, [b"1", b"2", b"3"])
    made = transactional(place)
    with member(place, **{"enable.auto.commit": False}) as source:
        for commits in (False, True):
            found = read(source, 3)
            made.begin_transaction()
            for message in found:
                made.produce(out.topic, message.value() * 2)
            positions = source.position(source.assignment())
            assert [one.offset for one in positions] == [3]
            made.send_offsets_to_transaction(positions, source.consumer_group_metadata(), TIMEOUT_S)
            if commits:
                made.commit_transaction(TIMEOUT_S)
            else:
                made.abort_transaction(TIMEOUT_S)
                (before,) = source.committed([TopicPartition(place.topic, 0)], TIMEOUT_S)
                assert before.offset < 0
                source.seek(TopicPartition(place.topic, 0, 0))
        (after,) = source.committed([TopicPartition(place.topic, 0)], TIMEOUT_S)
        assert after.offset == 3
    with reader(out) as sink:
        assert values(sink, 3) == [b"11", b"22", b"33"]
        assert sink.consume(1, 1.0) == []
    done(client.delete_topics([out.topic]))


def fencing(place: Place) -> None:
    """The second producer of an id ends the transaction of the first, which cannot go on."""
    old = transactional(place)
    old.begin_transaction()
    old.produce(place.topic, b"of the old")
    assert old.flush(TIMEOUT_S) == 0
    new = transactional(place)
    try:
        old.commit_transaction(TIMEOUT_S)
        raise AssertionError("it is fenced")
    except KafkaException as error:
        assert error.args[0].fatal() and error.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    new.begin_transaction()
    new.produce(place.topic, b"of the new")
    new.commit_transaction(TIMEOUT_S)
    with reader(place) as committed:
        assert values(committed, 1) == [b"of the new"]


CELLS = {matrix.TRANSACTION: transaction, matrix.TRANSFORM: transform, matrix.FENCING: fencing}
