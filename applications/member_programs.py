"""A member of a consumer group for each client, as a program of its own that runs until it is told to stop.

Each prints the value of every record that it reads on a line of its own, commits as its client does by default, and
leaves the group on SIGTERM. Nothing but the session's time-out is set, so that the members that are killed are missed
soon; the consumer protocol leaves it to the brokers.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.peers.kafka_tools import SHORT_LIVED, VERIFIABLE_CONSUMER, Unavailable, get_kafka

SESSION_MS = 6_000  # the shortest that brokers allow by default
SESSION_OF_BROKERS_MS = 45_000  # group.consumer.session.timeout.ms
VERIFIABLE_SESSION_MS = 30_000  # of kafka-verifiable-consumer
NO_KCAT = "there is no kcat on this machine"

CONFLUENT = """\
import signal
from confluent_kafka import Consumer

stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
consumer = Consumer({{
    "bootstrap.servers": {servers!r}, "group.id": {group!r}, "auto.offset.reset": "earliest", {more}
}})
consumer.subscribe([{topic!r}])
while not stopped:
    message = consumer.poll(0.2)
    if message is not None and message.error() is None:
        print(message.value().decode(), flush=True)
consumer.close()
"""
KAFKA_PYTHON = """\
import signal
from kafka import KafkaConsumer

stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
consumer = KafkaConsumer({topic!r}, bootstrap_servers={servers!r}, group_id={group!r}, auto_offset_reset="earliest",
                         session_timeout_ms={session_ms}, heartbeat_interval_ms={session_ms} // 3)
while not stopped:
    for records in consumer.poll(200).values():
        for record in records:
            print(record.value.decode(), flush=True)
consumer.close()
"""
AIOKAFKA = """\
import asyncio, signal
from aiokafka import AIOKafkaConsumer

async def main():
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    consumer = AIOKafkaConsumer({topic!r}, bootstrap_servers={servers!r}, group_id={group!r},
                                auto_offset_reset="earliest", session_timeout_ms={session_ms},
                                heartbeat_interval_ms={session_ms} // 3)
    await consumer.start()
    while not stopped.is_set():
        for records in (await consumer.getmany(timeout_ms=200)).values():
            for record in records:
                print(record.value.decode(), flush=True)
    await consumer.stop()

asyncio.run(main())
"""
QUORUMLOG = """\
import signal
from quorumlog import Cluster

stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
with Cluster({servers!r}) as cluster:
    consumer = cluster.consumer([{topic!r}], group={group!r}, start="earliest", {more})
    while not stopped:
        for record in consumer.poll(None, 200):
            print(record.value.decode(), flush=True)
    consumer.close()
"""


@dataclass(frozen=True, slots=True)
class Place:
    """What a member is told. cache: of packages. folder: for its program."""

    servers: str
    topic: str
    group: str
    cache: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Program:
    """command: of one member; raises Unavailable where the client cannot be had. session_ms: how long a member is
    missed before its partitions go to others."""

    name: str
    command: Callable[[Place], list[str]]
    session_ms: int = SESSION_MS


def _script(text: str, name: str, more: str = "") -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        program = place.folder / f"{name}.py"
        words = {"servers": place.servers, "topic": place.topic, "group": place.group}
        program.write_text(text.format(**words, session_ms=SESSION_MS, more=more))
        return [sys.executable, str(program)]

    return command


def _kcat(place: Place) -> list[str]:
    found = shutil.which("kcat") or shutil.which("kafkacat")
    if found is None:
        raise Unavailable(NO_KCAT)
    settings = ("-X", "auto.offset.reset=earliest", "-X", f"session.timeout.ms={SESSION_MS}")
    return [found, "-u", "-b", place.servers, *settings, "-G", place.group, place.topic]


def _java(*more: str) -> Callable[[Place], list[str]]:
    """It commits what each poll has returned."""

    def command(place: Place) -> list[str]:
        words = ("--bootstrap-server", place.servers, "--topic", place.topic, "--group-id", place.group)
        return get_kafka(place.cache / "kafka").command(VERIFIABLE_CONSUMER, [*words, "--verbose", *more], SHORT_LIVED)

    return command


CLASSIC = (
    Program("kafka-python", _script(KAFKA_PYTHON, "kafka_python")),
    Program("aiokafka", _script(AIOKAFKA, "aiokafka_")),
    Program("confluent-kafka", _script(CONFLUENT, "confluent", f'"session.timeout.ms": {SESSION_MS}')),
    Program("quorumlog", _script(QUORUMLOG, "own", f"session_timeout_ms={SESSION_MS}")),
)
CONSUMER = (
    Program(
        "confluent-kafka-848",
        _script(CONFLUENT, "confluent_848", '"group.protocol": "consumer"'),
        SESSION_OF_BROKERS_MS,
    ),
    Program("quorumlog-848", _script(QUORUMLOG, "own_848", 'group_protocol="consumer"'), SESSION_OF_BROKERS_MS),
)
KCAT = (Program("kcat", _kcat),)
JAVA = (
    Program("java", _java(), VERIFIABLE_SESSION_MS),
    Program("java-848", _java("--group-protocol", "consumer"), SESSION_OF_BROKERS_MS),
)
