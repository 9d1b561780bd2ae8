"""A thousand logs to open do not hold up the appends, and the quorum's log, that share a directory's worker."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import RemoveTopicRecord
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog_broker.logdirs.background_jobs import MAX_UNDER_WAY, RETRY_MS, BackgroundJobs, Work
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


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Queue:
    """Jobs run when the test says so."""

    def __init__(self) -> None:
        self.full = self.failed = False
        self.entered: list[Work] = []
        self.jobs = BackgroundJobs(self._enter, lambda: self.failed)
        self.performed: list[int] = []
        self.refused: list[int] = []

    def _enter(self, work: Work) -> None:
        if self.full or self.failed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no")
        self.entered.append(work)

    def add(self, *numbers: int, first: bool = False) -> None:
        for number in numbers:
            answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(partial(self._ended, number))
            self.jobs.add(Work(partial(int, number), answer), first=first)

    def _ended(self, number: int, answer: asyncio.Future[int]) -> None:
        (self.performed if answer.exception() is None else self.refused).append(number)

    def perform(self, count: int) -> None:
        for _ in range(count):
            work = self.entered.pop(0)
            work.end(work.perform())


@in_loop
async def test_a_few_at_a_time_and_in_their_order() -> None:
    queue = Queue()
    queue.add(*range(10))
    assert (len(queue.entered), len(queue.jobs)) == (MAX_UNDER_WAY, 10 - MAX_UNDER_WAY)
    queue.perform(3)
    assert len(queue.entered) == MAX_UNDER_WAY
    queue.perform(7)
    await asyncio.sleep(0)
    assert (queue.performed, len(queue.jobs)) == (list(range(10)), 0)


@in_loop
async def test_what_is_first_passes_what_waits_and_keeps_its_own_order() -> None:
    queue = Queue()
    queue.add(*range(6))
    queue.add(10, 11, first=True)
    assert len(queue.jobs) == 8 - MAX_UNDER_WAY
    queue.perform(8)
    await asyncio.sleep(0)
    assert queue.performed == [0, 1, 2, 3, 10, 11, 4, 5]


@in_loop
async def test_in_a_hurry_all_go_at_once() -> None:
    queue = Queue()
    queue.add(*range(10))
    queue.jobs.hurry()
    queue.add(10)
    assert len(queue.entered) == 11
    queue.perform(11)
    await asyncio.sleep(0)
    assert queue.performed == list(range(11))


def test_a_full_queue_is_asked_again() -> None:
    cluster = ReplicaCluster(nodes=(1,))
    queue = Queue()
    queue.full = True
    cluster.nodes[1].loop.deliver(queue.add, 1, 2)
    cluster.run_for(RETRY_MS // 2)
    queue.full = False
    assert not queue.entered and not queue.refused
    cluster.run_for(RETRY_MS)
    cluster.nodes[1].loop.deliver(queue.perform, 2)
    cluster.run_for(1)
    assert queue.performed == [1, 2]


@in_loop
async def test_a_failed_directory_fails_all_waiting_jobs() -> None:
    queue = Queue()
    queue.add(*range(MAX_UNDER_WAY + 2))
    queue.failed = True
    queue.perform(1)
    await asyncio.sleep(0)
    assert queue.refused == [MAX_UNDER_WAY, MAX_UNDER_WAY + 1]
    queue.add(99)
    await asyncio.sleep(0)
    assert queue.refused[-1] == 99


@in_loop
async def test_thousands_of_jobs_that_wait_fail_with_their_directory() -> None:
    """A topic with thousands of partitions is removed meanwhile."""
    queue = Queue()
    queue.add(*range(5_000))
    queue.failed = True
    queue.perform(1)
    await asyncio.sleep(0)
    assert (queue.performed, queue.refused) == ([0], list(range(MAX_UNDER_WAY, 5_000)))
