"""The Python producer's transactions on real processes: killed leaders, coordinators and producers, exactly once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from quorumlog.client.blocking import Producer
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.offsets import LATEST
from quorumlog.client.transactions.errors import ProducerFenced, TransactionFailed
from quorumlog.ids import NodeId
from quorumlog.testing import LocalCluster
from quorumlog.testing.topic import LocalTopic
from quorumlog.testing.waiting import wait_until

PARTITIONS = 3
TRANSACTIONS = 40
KILL_EVERY = 20
TRIES = 4  # of one transaction
RUN_S = 120.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("live") / "cluster") as cluster:
        yield cluster


def wait_ended(cluster: LocalCluster, topic: LocalTopic) -> None:
    """A commit is answered once it is decided; readers see it when each partition has its marker."""
    latest = {
        (topic.name, index): LATEST for index in range(len(cluster.client.admin.describe_topic(topic.name).partitions))
    }

    def ended() -> bool:
        admin = cluster.client.admin
        return admin.list_offsets(latest, isolation_level="read_committed") == admin.list_offsets(latest)

    wait_until(ended, 30, "the markers of every transaction")


def read(cluster: LocalCluster, topic: LocalTopic, level: str = "read_committed") -> list[int]:
    if level == "read_committed":
        wait_ended(cluster, topic)
    with cluster.client.consumer(topic.name, stop="latest", isolation_level=level) as consumer:
        return [int(record.value or b"") for record in consumer]


def transact(producer: Producer, work: Callable[[], None]) -> None:
    """As applications do: a transaction that was aborted is done again. A few times, or something is wrong."""
    for attempt in range(1, TRIES + 1):
        try:
            with producer.transaction():
                work()
            return
        except TransactionFailed:
            if attempt == TRIES:
                raise


def columns(cluster: LocalCluster, topic: LocalTopic) -> list[int]:
    found: list[int] = []
    with cluster.client.consumer(topic.name, stop="latest", isolation_level="read_committed") as consumer:
        while not consumer.finished:
            chunk = consumer.next_arrow(1_000)
            if chunk is not None:
                found += [int(value) for value in chunk[1].column("value").to_pylist()]
    return found


@pytest.mark.parametrize("transport", ["auto", "grpc"])
def test_committed_and_aborted(cluster: LocalCluster, transport: str) -> None:
    options = {"transactional_id": f"x-{transport}", "transport": transport}
    with cluster.topic("numbers", partitions=PARTITIONS) as topic, cluster.client.producer(**options) as producer:
        for turn in range(20):

            def work(turn: int = turn) -> None:
                for number in range(turn * 10, turn * 10 + 10):
                    producer.send(topic.name, str(number), partition=number % PARTITIONS)
                producer.send_offsets({(topic.name, 0): turn}, GroupMetadata(f"g-{transport}"))
                producer.flush()
                if turn % 4 == 3:
                    raise ZeroDivisionError

            try:
                transact(producer, work)
            except ZeroDivisionError:
                pass
        kept = [number for number in range(200) if number // 10 % 4 != 3]
        assert sorted(read(cluster, topic)) == sorted(columns(cluster, topic)) == kept
        assert set(read(cluster, topic, "read_uncommitted")) == set(range(200))
        found = cluster.client.admin.group_offsets(f"g-{transport}", require_stable=True)
        assert found[topic.name, 0].offset == 18


def test_a_new_producer_fences_the_old_one(cluster: LocalCluster) -> None:
    with (
        cluster.topic("numbers", partitions=1) as topic,
        cluster.client.producer(transactional_id="one") as old,
        cluster.client.producer(transactional_id="one") as new,
    ):
        old.begin()
        old.send(topic.name, "1").result(30)
        with new.transaction():
            new.send(topic.name, "2")
        with pytest.raises((ProducerFenced, TransactionFailed)):
            old.commit()
        with pytest.raises(ProducerFenced, match="taken over"):
            old.abort()
        assert read(cluster, topic) == [2]


@pytest.mark.timeout(240)
def test_kills_on_the_way(cluster: LocalCluster) -> None:
    """Leaders of partitions and coordinators in turn. Every transaction that was committed is there once and whole."""
    with (
        cluster.topic("numbers", partitions=PARTITIONS) as topic,
        cluster.client.producer(transactional_id="killed") as producer,
    ):
        kept: list[int] = []
        victim: NodeId | None = None
        for turn in range(TRANSACTIONS):
            numbers = range(turn * 10, turn * 10 + 10)

            def work(turn: int = turn, numbers: range = numbers) -> None:
                nonlocal victim
                for number in numbers:
                    producer.send(topic.name, str(number), partition=number % PARTITIONS)
                if turn % KILL_EVERY == KILL_EVERY // 2 and victim is None:
                    victim = cluster.leader_of(topic, turn // KILL_EVERY % PARTITIONS)
                    cluster.kill(victim)

            transact(producer, work)
            kept += numbers
            if victim is not None and turn % KILL_EVERY == KILL_EVERY - 1:
                cluster.restart(victim)
                victim = None
        cluster.wait_in_sync(topic)
        assert Counter(read(cluster, topic)) == Counter(kept)


DIES = """
import os, signal, sys
from quorumlog.client.blocking import Producer
producer = Producer(bootstrap_servers=sys.argv[1], transactional_id="dies", transaction_timeout_ms=60_000)
producer.begin()
for number in range(100):
    producer.send(sys.argv[2], str(number)).result(30)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_producer_left_open_is_aborted_by_its_next_life(cluster: LocalCluster) -> None:
    with cluster.topic("numbers", partitions=1) as topic:
        done = subprocess.run(
            [sys.executable, "-c", DIES, cluster.bootstrap_servers, topic.name], check=False, timeout=RUN_S
        )
        assert done.returncode == -9
        assert read(cluster, topic, "read_uncommitted") == list(range(100))
        with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="dies") as producer:
            with producer.transaction():
                producer.send(topic.name, "100")
        assert read(cluster, topic) == [100]


@pytest.mark.timeout(120)
def test_a_transaction_is_aborted_while_the_last_ones_markers_are_written(cluster: LocalCluster) -> None:
    """A commit is answered before its markers are there, and the next transaction may end before that, too."""
    with cluster.topic("steps", PARTITIONS) as topic:
        for name in ("one", "two", "three"):
            with cluster.client.producer(transactional_id=f"{name}-of-{topic.name}") as producer:
                for number in range(20):
                    producer.begin()
                    for index in range(PARTITIONS):
                        producer.send(topic.name, str(number), partition=index)
                    producer.abort() if number % 2 else producer.commit()
        assert sorted(read(cluster, topic)) == sorted([*range(0, 20, 2)] * 3 * PARTITIONS)
