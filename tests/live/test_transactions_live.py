"""Transactions of librdkafka over real processes, while the coordinator, a leader, or the producer is killed.

A reader of committed records sees each committed transaction once, whole, and nothing of an aborted one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from quorumlog.testing import LocalCluster
from quorumlog_broker.coordinator.placement import partition_of

PARTITIONS, STATE_PARTITIONS, OFFSETS_PARTITIONS = 3, 5, 5
ID = "accounts"
GROUP = "readers"
WAIT_S = 60.0
CONFIG = {
    "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def producer_of(cluster: LocalCluster, **more: object) -> Producer:
    made = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": ID, "linger.ms": 0, "log_level": 0, **more}
    )
    made.init_transactions(WAIT_S)
    return made


class Ledger:
    """What transactions should have left. A transaction writes its number to each partition."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic
        self.number = 0
        self.committed: list[int] = []

    def write(self, producer: Producer, *, committed: bool) -> None:
        """One transaction. It is begun again until it has ended as wished."""
        self.number += 1
        while True:
            try:
                producer.begin_transaction()
                for partition in range(PARTITIONS):
                    producer.produce(self.topic, str(self.number), partition=partition)
                producer.flush(WAIT_S)
                if committed:
                    producer.commit_transaction(WAIT_S)
                else:
                    producer.abort_transaction(WAIT_S)
            except KafkaException as error:
                reason = error.args[0]
                if reason.txn_requires_abort():
                    producer.abort_transaction(WAIT_S)
                    continue
                raise
            break
        if committed:
            self.committed.append(self.number)

    def read(self) -> Counter[tuple[int, int]]:
        """(partition, number) of every committed record."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": "ledger",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        found: Counter[tuple[int, int]] = Counter()
        consumer.assign([TopicPartition(self.topic, index, 0) for index in range(PARTITIONS)])
        ended: set[int] = set()
        deadline = time.monotonic() + WAIT_S
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline, f"the ends of {ended} only"
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                ended.add(message.partition())
            else:
                found[message.partition(), int(message.value())] += 1
        consumer.close()
        return found

    def check(self) -> None:
        wanted = Counter((partition, number) for number in self.committed for partition in range(PARTITIONS))
        found = self.read()
        assert found == wanted, f"too many: {found - wanted}, missing: {wanted - found}"


@contextmanager
def ledger_of(folder: Path) -> Iterator[Ledger]:
    with LocalCluster(folder / "cluster", config=CONFIG) as cluster, cluster.topic("ledger", PARTITIONS) as topic:
        yield Ledger(cluster, topic.name)


def coordinator(cluster: LocalCluster, transactional_id: str = ID) -> int:
    return cluster.leader_of("__transaction_state", partition_of(transactional_id, STATE_PARTITIONS))


@pytest.mark.timeout(240)
def test_transactions_live_on_when_coordinator_and_leaders_are_killed(tmp_path: Path) -> None:
    with ledger_of(tmp_path) as ledger:
        cluster = ledger.cluster
        producer = producer_of(cluster)
        for victim_of in (lambda: coordinator(cluster), lambda: cluster.leader_of(ledger.topic, 0)):
            for number in range(6):
                ledger.write(producer, committed=number % 3 != 1)
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(ledger.topic, "-1", partition=partition)
            producer.flush(WAIT_S)
            victim = victim_of()
            cluster.kill(victim)
            producer.abort_transaction(WAIT_S)
            for number in range(6):
                ledger.write(producer, committed=number % 3 != 1)
            cluster.restart(victim)
            cluster.wait_in_sync(ledger.topic)
        ledger.check()


@pytest.mark.timeout(240)
def test_a_commit_that_was_answered_survives_its_coordinator(tmp_path: Path) -> None:
    with ledger_of(tmp_path) as ledger:
        producer = producer_of(ledger.cluster)
        for _ in range(2):
            ledger.write(producer, committed=True)
            victim = coordinator(ledger.cluster)
            ledger.cluster.kill(victim)
            ledger.check()
            ledger.cluster.restart(victim)
            ledger.cluster.wait_in_sync("__transaction_state")


CHILD = """
import sys, time
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": sys.argv[2], "linger.ms": 0,
                     "transaction.timeout.ms": int(sys.argv[4])})
producer.init_transactions(60)
producer.begin_transaction()
for partition in range(3):
    producer.produce(sys.argv[3], "-1", partition=partition)
assert producer.flush(60) == 0
print("open", flush=True)
time.sleep(600)
"""


def killed_producer(ledger: Ledger, timeout_ms: int) -> None:
    """A producer of another process is killed in its transaction."""
    arguments = [ledger.cluster.bootstrap_servers, ID, ledger.topic, str(timeout_ms)]
    with subprocess.Popen([sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        os.kill(child.pid, signal.SIGKILL)


@pytest.mark.timeout(180)
def test_what_a_killed_producer_left_open_is_aborted(tmp_path: Path) -> None:
    with ledger_of(tmp_path) as ledger:
        killed_producer(ledger, 60_000)
        began = time.monotonic()
        producer = producer_of(ledger.cluster)
        assert time.monotonic() - began < 20, "the next producer aborts it at once"
        ledger.write(producer, committed=True)
        ledger.check()
        killed_producer(ledger, 2_000)
        began = time.monotonic()
        while not stable(ledger):
            assert time.monotonic() - began < 20, "nobody aborted it"
            time.sleep(0.2)
        ledger.check()


def stable(ledger: Ledger) -> bool:
    """No transaction is open: the last stable offsets are the ends."""
    consumer = Consumer(
        {"bootstrap.servers": ledger.cluster.bootstrap_servers, "group.id": "x", "isolation.level": "read_committed"}
    )
    plain = Consumer(
        {"bootstrap.servers": ledger.cluster.bootstrap_servers, "group.id": "x", "isolation.level": "read_uncommitted"}
    )
    places = [TopicPartition(ledger.topic, index) for index in range(PARTITIONS)]
    ends = [[one.get_watermark_offsets(place, WAIT_S)[1] for place in places] for one in (consumer, plain)]
    consumer.close()
    plain.close()
    return ends[0] == ends[1]


@pytest.mark.timeout(240)
def test_offsets_go_with_the_output_while_the_coordinators_are_killed(tmp_path: Path) -> None:
    """Read, transform, write: each input appears in the output once."""
    with ledger_of(tmp_path) as ledger, ledger.cluster.topic("input", 1) as source:
        cluster, inputs = ledger.cluster, 60
        plain = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        for number in range(1, inputs + 1):
            plain.produce(source.name, str(number), partition=0)
        assert plain.flush(WAIT_S) == 0
        producer = producer_of(cluster)
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 30_000,
                "log_level": 0,
            }
        )
        consumer.subscribe([source.name])
        done, killed = 0, False
        deadline = time.monotonic() + 150
        while done < inputs:
            assert time.monotonic() < deadline, f"{done} of {inputs}"
            messages = [one for one in consumer.consume(5, 1.0) if one.error() is None]
            if not messages:
                continue
            producer.begin_transaction()
            try:
                for message in messages:
                    for partition in range(PARTITIONS):
                        producer.produce(ledger.topic, message.value(), partition=partition)
                last = messages[-1].offset() + 1
                if done >= inputs // 2 and not killed:
                    killed = True
                    cluster.kill(cluster.leader_of("__consumer_offsets", partition_of(GROUP, OFFSETS_PARTITIONS)))
                producer.send_offsets_to_transaction(
                    [TopicPartition(source.name, 0, last)], consumer.consumer_group_metadata(), WAIT_S
                )
                producer.commit_transaction(WAIT_S)
                done = last
            except KafkaException as error:
                assert error.args[0].txn_requires_abort() or error.args[0].retriable(), error
                producer.abort_transaction(WAIT_S)
                consumer.seek(TopicPartition(source.name, 0, done))
        consumer.close()
        ledger.committed = list(range(1, inputs + 1))
        ledger.check()
