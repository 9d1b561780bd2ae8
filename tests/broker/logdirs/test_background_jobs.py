"""A thousand logs to open do not hold up the appends, and the quorum's log, that share a directory's worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import RemoveTopicRecord
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog_broker.logdirs.background_jobs import MAX_UNDER_WAY, RETRY_MS, BackgroundJobs
from quorumlog_storage.log.log_errors import LogClosed

OTHER_ID, NEXT_ID = bytes([8]) * 16, bytes([9]) * 16
MANY = 60


def open_logs(node: Node, topic_id: bytes) -> int:
    return sum(replica.log is not None for key, replica in node.replicas.items() if key[0] == topic_id)


def test_an_append_does_not_wait_until_all_logs_of_a_new_topic_are_open() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.create_topic(name="many", topic_id=OTHER_ID, partitions=MANY)
    cluster.produce(1, "a")
    assert all(open_logs(node, OTHER_ID) < MANY / 2 for node in cluster.nodes.values())
    cluster.run_until(lambda: all(open_logs(node, OTHER_ID) == MANY for node in cluster.nodes.values()))


def test_an_internal_topic_is_led_while_the_logs_of_a_new_topic_are_made() -> None:
    """Its coordinators loaded for 12 to 18 s behind a topic of 1,000 partitions."""
    cluster = ReplicaCluster()
    cluster.create_topic(name="many", topic_id=OTHER_ID, partitions=MANY)
    cluster.create_topic(name=CONSUMER_OFFSETS)
    cluster.wait_led(1)
    assert all(open_logs(node, OTHER_ID) < MANY / 2 for node in cluster.nodes.values())
    cluster.run_until(lambda: all(open_logs(node, OTHER_ID) == MANY for node in cluster.nodes.values()))


def test_an_internal_topic_that_is_made_again_follows_the_one_that_leaves() -> None:
    """Its directories have the same names."""
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,), name=CONSUMER_OFFSETS)
    cluster.wait_led(1)
    cluster.create_topic((1,), name="many", topic_id=OTHER_ID, partitions=MANY)
    cluster.commit(RemoveTopicRecord(topic_id=TOPIC_ID))
    cluster.create_topic((1,), name=CONSUMER_OFFSETS, topic_id=NEXT_ID)
    cluster.run_until(lambda: open_logs(cluster.nodes[1], NEXT_ID) == 1)
    assert open_logs(cluster.nodes[1], OTHER_ID) == MANY


def test_a_broker_that_stops_meanwhile_closes_what_it_opens() -> None:
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,), partitions=MANY)
    node = cluster.nodes[1]
    cluster.run_until(lambda: bool(node.replicas))
    replicas = list(node.replicas.values())
    assert node.run(node.data_plane.close())
    logs = [replica.partition_log for replica in replicas if replica.partition_log is not None]
    assert len(logs) == MANY
    for held in logs:
        with pytest.raises(LogClosed):
            held.log.sync()


class Queue:
    """Jobs run when the test says so."""

    def __init__(self) -> None:
        self.full = self.failed = False
        self.calls: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.jobs = BackgroundJobs(self.call, lambda: self.failed)
        self.performed: list[int] = []
        self.refused: list[int] = []

    def call(self, work: Callable[[], Any], *, done: Callable[[Any], None], failed: Callable[[Any], None]) -> None:
        if self.full or self.failed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no")
        self.calls.append((work, done))

    def add(self, *numbers: int, first: bool = False) -> None:
        for number in numbers:
            self.jobs.add(partial(int, number), self.performed.append, partial(self._refuse, number), first=first)

    def _refuse(self, number: int, _error: object) -> None:
        self.refused.append(number)

    def perform(self, count: int) -> None:
        for _ in range(count):
            work, done = self.calls.pop(0)
            done(work())


def test_a_few_at_a_time_and_in_their_order() -> None:
    queue = Queue()
    queue.add(*range(10))
    assert (len(queue.calls), len(queue.jobs)) == (MAX_UNDER_WAY, 10 - MAX_UNDER_WAY)
    queue.perform(3)
    assert len(queue.calls) == MAX_UNDER_WAY
    queue.perform(7)
    assert (queue.performed, len(queue.jobs)) == (list(range(10)), 0)


def test_what_is_first_passes_what_waits_and_keeps_its_own_order() -> None:
    queue = Queue()
    queue.add(*range(6))
    queue.add(10, 11, first=True)
    assert len(queue.jobs) == 8 - MAX_UNDER_WAY
    queue.perform(8)
    assert queue.performed == [0, 1, 2, 3, 10, 11, 4, 5]


def test_in_a_hurry_all_go_at_once() -> None:
    queue = Queue()
    queue.add(*range(10))
    queue.jobs.hurry()
    queue.add(10)
    assert len(queue.calls) == 11
    queue.perform(11)
    assert queue.performed == list(range(11))


def test_a_full_queue_is_asked_again() -> None:
    cluster = ReplicaCluster(nodes=(1,))
    queue = Queue()
    queue.full = True
    cluster.nodes[1].loop.deliver(queue.add, 1, 2)
    cluster.run_for(RETRY_MS // 2)
    queue.full = False
    assert not queue.calls and not queue.refused
    cluster.run_for(RETRY_MS)
    queue.perform(2)
    assert queue.performed == [1, 2]


def test_a_failed_directory_fails_all_waiting_jobs() -> None:
    queue = Queue()
    queue.add(*range(MAX_UNDER_WAY + 2))
    queue.failed = True
    queue.perform(1)
    assert queue.refused == [MAX_UNDER_WAY, MAX_UNDER_WAY + 1]
    queue.add(99)
    assert queue.refused[-1] == 99


def test_a_job_that_is_added_whenever_one_fails_fails_as_often() -> None:
    """A directory fails while a topic with thousands of partitions is removed, each after the one before."""
    queue = Queue()
    queue.failed = True
    left = list(range(5_000))

    def again(_error: object = None) -> None:
        if left:
            queue.jobs.add(partial(int, left.pop()), queue.performed.append, again)

    again()
    assert not left and not queue.performed
