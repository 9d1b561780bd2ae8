"""Our own consumers as members of a group over real processes, while members and the coordinator are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from timed import until

from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import WokenUp
from quorumlog.client.offsets import LATEST
from quorumlog.testing import LocalCluster
from quorumlog.testing.topic import LocalTopic

PARTITIONS, WAIT_S = 4, 40.0
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "group.min.session.timeout.ms": "5000",
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("group") / "cluster", config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: LocalCluster) -> Iterator[LocalTopic]:
    with cluster.topic("parcels", PARTITIONS) as topic:
        yield topic


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "printed"
    path.touch()
    return path


def group_of(topic: str) -> str:
    return f"readers-of-{topic}"


class Reader:
    """A consumer with a thread of its own. told: what its callbacks heard."""

    def __init__(self, cluster: LocalCluster, topic: str, **options: Any) -> None:
        self.told: list[str] = []
        self.records: list[ConsumedRecord] = []
        self.error: Exception | None = None
        self.consumer = cluster.client.consumer(
            None if "pattern" in options else topic,
            group=group_of(topic),
            session_timeout_ms=5_000,
            heartbeat_interval_ms=300,
            on_assigned=lambda partitions: self.told.append(f"assigned {len(partitions)}"),
            on_revoked=self._revoked,
            **options,
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _revoked(self, partitions: list[tuple[str, int]]) -> None:
        self.told.append(f"revoked {len(partitions)}")
        self.consumer.commit()  # a callback may call its consumer

    def _run(self) -> None:
        try:
            for record in self.consumer:
                self.records.append(record)
        except WokenUp:
            pass
        except Exception as error:  # the test's own thread raises it
            self.error = error

    @property
    def values(self) -> list[str]:
        if self.error is not None:
            raise self.error
        return [(record.value or b"").decode() for record in list(self.records)]

    def close(self) -> None:
        self.consumer.wakeup()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        self.consumer.close()


def consume(cluster: LocalCluster, topic: str, output: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "quorumlog_cli.main", "consume", topic, "--group", group_of(topic), "-J"]
    command += [
        "-b",
        cluster.bootstrap_servers,
        "-X",
        "session.timeout.ms=5000",
        "-X",
        "heartbeat.interval.ms=300",
        *more,
    ]
    with output.open("ab") as file:
        return subprocess.Popen(command, stdout=file, cwd=Path(__file__).resolve().parents[2])


def printed(output: Path) -> list[str]:
    whole = [line for line in output.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [json.loads(line)["value"] for line in whole]


def produce(cluster: LocalCluster, topic: LocalTopic, name: str, count: int = 40) -> set[str]:
    with cluster.client.producer() as producer:
        for number in range(count):
            producer.send(topic.name, f"{name}-{number}", partition=number % PARTITIONS)
    return {f"{name}-{number}" for number in range(count)}


def committed(consumer: Consumer, topic: str) -> list[int]:
    found = consumer.committed([(topic, index) for index in range(PARTITIONS)])
    return [found[topic, index].offset for index in range(PARTITIONS)]


@pytest.mark.timeout(240)
def test_members_and_the_coordinator_are_killed_and_nothing_is_lost(
    cluster: LocalCluster, topic: LocalTopic, output: Path
) -> None:
    wanted = produce(cluster, topic, "first")
    reader = Reader(cluster, topic.name)
    until(lambda: set(reader.values) == wanted, WAIT_S, "the first records")
    process = consume(cluster, topic.name, output)
    until(lambda: reader.told[-1] == "assigned 2", WAIT_S, "the process has half of the partitions")
    wanted |= produce(cluster, topic, "shared")
    until(lambda: {*reader.values, *printed(output)} == wanted, WAIT_S, "the records of both")
    assert {*printed(output)} & wanted and sum(value.startswith("shared") for value in reader.values) == 20
    process.kill()
    process.wait()
    until(lambda: reader.told[-1] == "assigned 4", WAIT_S, "the killed member's partitions")
    wanted |= produce(cluster, topic, "alone")
    until(lambda: {*reader.values, *printed(output)} == wanted, WAIT_S, "what it has for itself")
    coordinator = cluster.client.admin.describe_group(group_of(topic.name)).coordinator
    cluster.kill(coordinator)
    wanted |= produce(cluster, topic, "after")
    until(lambda: {*reader.values, *printed(output)} == wanted, WAIT_S, "the records after the fail-over")
    assert reader.told[-1] == "assigned 4", "the group did not rebalance"
    reader.close()
    assert reader.told[-1] == "revoked 4"
    again = [value for value in reader.values if value in printed(output)]
    assert len(again) <= 20, "only what the killed process had not committed is read twice"
    with cluster.client.consumer(topic.name, group=group_of(topic.name), start="none", stop="latest") as last:
        assert list(last) == [] and committed(last, topic.name) == [40] * PARTITIONS
    cluster.restart(coordinator)


@pytest.mark.timeout(240)
def test_members_of_the_consumer_protocol_are_killed_and_nothing_is_lost(
    cluster: LocalCluster, topic: LocalTopic, output: Path
) -> None:
    """The coordinator assigns, and finds the topics of a pattern."""
    wanted = produce(cluster, topic, "first")
    reader = Reader(cluster, topic.name, pattern=f"{topic.name}|other", protocol="consumer")
    until(lambda: set(reader.values) == wanted, WAIT_S, "the first records")
    process = consume(cluster, topic.name, output, "-X", "group.protocol=consumer")
    until(lambda: len(reader.consumer.assignment) == 2, WAIT_S, "the process has half of the partitions")
    assert reader.told == ["assigned 4", "revoked 2", "assigned 0"]
    wanted |= produce(cluster, topic, "shared")
    until(lambda: {*reader.values, *printed(output)} == wanted, WAIT_S, "the records of both")
    assert len(printed(output)) == 20, "it read what it was given, from where the other one had come to"
    process.kill()
    process.wait()
    until(lambda: len(reader.consumer.assignment) == 4, WAIT_S, "the killed member's partitions")
    coordinator = cluster.client.admin.describe_group(group_of(topic.name)).coordinator
    cluster.kill(coordinator)
    wanted |= produce(cluster, topic, "after")
    until(lambda: {*reader.values, *printed(output)} == wanted, WAIT_S, "the records after the fail-over")
    assert reader.told[-1] == "assigned 2", "the group did not rebalance"
    reader.close()
    with cluster.client.consumer(topic.name, group=group_of(topic.name), start="none", stop="latest") as last:
        assert list(last) == [] and sum(committed(last, topic.name)) == 120
    cluster.restart(coordinator)


@pytest.mark.timeout(180)
def test_consume_goes_on_where_its_group_has_come_to(cluster: LocalCluster, topic: LocalTopic, output: Path) -> None:
    wanted = produce(cluster, topic, "first")
    assert consume(cluster, topic.name, output, "-n", "7").wait(WAIT_S) == 0
    assert len(printed(output)) == 7
    assert consume(cluster, topic.name, output, "-e").wait(WAIT_S) == 0
    assert sorted(printed(output)) == sorted(wanted), "each once"
    process = consume(cluster, topic.name, output)  # it waits for more
    wanted = produce(cluster, topic, "second")
    until(lambda: {*printed(output)[40:]} == wanted, WAIT_S, "the second records")
    process.send_signal(signal.SIGINT)
    process.wait(WAIT_S)
    assert cluster.client.admin.describe_group(group_of(topic.name)).group.group_state == "Empty", "it has left"
    with cluster.client.consumer(topic.name, group=group_of(topic.name), start="none", stop="latest") as last:
        assert list(last) == [], "what was printed before the interrupt was committed"


def records(consumer: Consumer) -> list[str]:
    return [(record.value or b"").decode() for record in consumer]


def columns(consumer: Consumer) -> list[str]:
    found: list[str] = []
    while not consumer.finished:
        chunk = consumer.next_arrow(500)
        found += [value.decode() for value in chunk[1].column("value").to_pylist()] if chunk is not None else []
    return found


READERS: dict[str, Callable[[Consumer], list[str]]] = {"records": records, "columns": columns}


@pytest.mark.timeout(120)
def test_members_of_groups_read_what_was_committed(cluster: LocalCluster, topic: LocalTopic) -> None:
    """Aborted records and markers are in between and at the end: positions and commits pass over them."""
    with cluster.client.producer(transactional_id=f"writer-of-{topic.name}") as producer:
        for number in range(12):
            producer.begin()
            for index in range(PARTITIONS):
                producer.send(topic.name, f"{number}-{index}", partition=index)
            producer.abort() if number % 3 == 2 else producer.commit()
    partitions = [(topic.name, index) for index in range(PARTITIONS)]
    latest = dict.fromkeys(partitions, LATEST)
    admin = cluster.client.admin
    until(
        lambda: admin.list_offsets(latest, isolation_level="read_committed") == admin.list_offsets(latest),
        WAIT_S,
        "its markers",
    )
    ends = {key: found.offset for key, found in admin.list_offsets(latest).items()}
    wanted = sorted(f"{number}-{index}" for number in range(12) if number % 3 != 2 for index in range(PARTITIONS))
    for name, read in READERS.items():
        more: dict[str, Any] = {
            "group": f"{name}-of-{topic.name}",
            "isolation_level": "read_committed",
            "stop": "latest",
        }
        with cluster.client.consumer(topic.name, **more) as consumer:
            assert sorted(read(consumer)) == wanted
            assert {key: consumer.position(*key) for key in partitions} == ends
            assert [consumer.lag(*key) for key in partitions] == [0] * PARTITIONS
        with cluster.client.consumer(topic.name, **more) as consumer:
            assert {key: one.offset for key, one in consumer.committed(partitions).items()} == ends
            assert read(consumer) == []
