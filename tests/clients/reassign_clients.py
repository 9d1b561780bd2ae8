"""The same through the admin clients of librdkafka (elections only) and of kafka-python."""

from __future__ import annotations

import time

import cells_confluent
import cells_kafka_python
import client_matrix as matrix
import confluent_kafka
from cells_kafka_python import TIMEOUT_S
from client_matrix import Cell, Place
from kafka import TopicPartition
from kafka.errors import NoReassignmentInProgressError

from quorumlog.testing.waiting import wait_until


def wait_for(place: Place, replicas: list[int]) -> None:
    """Until the partition has these replicas, and no reassignment."""
    with cells_kafka_python.admin(place) as admin:
        until = time.monotonic() + TIMEOUT_S
        while True:
            under_way = admin.list_partition_reassignments()
            (topic,) = admin.describe_topics([place.topic])
            found = list(topic["partitions"][0]["replica_nodes"])
            if not under_way and found == replicas:
                return
            assert time.monotonic() < until, (under_way, found)


def move(place: Place, replicas: list[int]) -> None:
    with cells_kafka_python.admin(place) as admin:
        partition = TopicPartition(place.topic, 0)
        assert admin.alter_partition_reassignments({partition: replicas}) == {partition: None}
    wait_for(place, replicas)


def reassign(place: Place) -> None:
    """The last of three replicas goes, another one, and all come back; there is nothing to cancel then."""
    for replicas in ([1, 2], [2, 3], [3, 1, 2]):
        move(place, replicas)
    with cells_kafka_python.admin(place) as admin:
        partition = TopicPartition(place.topic, 0)
        assert admin.alter_partition_reassignments({partition: None}) == {partition: NoReassignmentInProgressError}


def elect_by_kafka_python(place: Place) -> None:
    move(place, [1, 2, 3])
    leader = leader_of(place)
    second = next(broker for broker in (2, 3, 1) if broker != leader)
    move(place, [second, *(broker for broker in (1, 2, 3) if broker != second)])
    assert leader_of(place) == leader, "an order moves no leader"
    with cells_kafka_python.admin(place) as admin:
        admin.elect_leaders(0, {place.topic: [0]})
    wait_led(place, second)


def elect_by_confluent(place: Place) -> None:
    """The second election finds the preferred leader in place."""
    admin = cells_confluent.admin(place)
    partition = confluent_kafka.TopicPartition(place.topic, 0)
    replicas = admin.list_topics(place.topic).topics[place.topic].partitions[0].replicas
    move(place, [*replicas[1:], replicas[0]])
    for needed in (True, False):
        done = admin.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [partition]).result(TIMEOUT_S)
        error = done[partition]
        assert (error is None) == needed
        if error is not None:
            assert error.code() == confluent_kafka.KafkaError.ELECTION_NOT_NEEDED
        wait_led(place, replicas[1])


def wait_led(place: Place, leader: int) -> None:
    """The election is answered once it is committed; the broker that is asked may not have its metadata yet."""
    wait_until(lambda: leader_of(place) == leader, TIMEOUT_S, f"{leader} leads {place.topic}")


def leader_of(place: Place) -> int:
    found = cells_confluent.admin(place).list_topics(place.topic).topics[place.topic].partitions[0].leader
    assert isinstance(found, int)
    return found


KAFKA_PYTHON_CELLS: dict[str, Cell] = {matrix.REASSIGN: reassign, matrix.ELECT: elect_by_kafka_python}
CONFLUENT_CELLS: dict[str, Cell] = {matrix.ELECT: elect_by_confluent}
