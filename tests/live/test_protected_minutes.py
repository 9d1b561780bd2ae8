"""`quorumlog up --tls`: the first minutes with TLS, a user and access rules, from an empty folder, and each client."""

from __future__ import annotations

import asyncio
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog import Cluster
from quorumlog.testing.layout import read_layout
from quorumlog.testing.protected import Access
from tests.live.person import Person

TIMEOUT_MS = 20_000


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    yield person
    person.leaves()


def test_the_first_minutes_of_a_protected_cluster(person: Person) -> None:
    said = person.hears("up", "-d", "--tls", "-n", "1", want=0)
    access = Access(read_layout(person.root))
    password = access.password()
    assert "admin, a super user" in said and "client.properties" in said and password not in said
    for path in [*person.root.glob("client.*"), access.password_file, *person.root.glob("tls/*.key")]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path

    person.types("topic", "create", "hello")
    person.types("produce", "hello", stdin="cli\n")
    for client in (by_quorumlog, by_confluent, by_kafka_python, by_aiokafka):
        client(access)
    read = person.types("consume", "hello", "-e")
    assert read.split() == ["cli", "quorumlog", "confluent", "kafka-python", "aiokafka"]
    elsewhere = person.folder / "elsewhere"
    elsewhere.mkdir()
    java = str(person.root / "client.properties")
    assert [one["topic"] for one in person.asks("topic", "list", "-X", java, at="elsewhere")] == ["hello"]
    assert person.asks("acl", "test", "User:mallory", "read", "topic:hello", want=8)["allowed"] is False

    person.types("kill", "1")
    assert password not in (person.root / "n1" / "node.log").read_text()

    moved = person.folder / "moved"
    moved.mkdir()
    shutil.move(person.root, moved / ".quorumlog")
    person.root = moved / ".quorumlog"
    document = person.asks("up", "-d", "--tls", at="moved")
    assert document["client_files"]["java"] == str(person.root / "client.properties")
    access = Access(read_layout(person.root))
    assert access.password() == password, "the user was made anew"
    assert person.types("consume", "hello", "-e", at="moved") == read
    by_confluent(access)


def by_quorumlog(access: Access) -> None:
    with Cluster(**access.options()) as cluster, cluster.producer() as producer:
        producer.send("hello", b"quorumlog")


def by_confluent(access: Access) -> None:
    """By the file, as kcat -F reads it."""
    lines = (access.layout.root / "client.librdkafka.properties").read_text().splitlines()
    options: dict[str, Any] = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert options == access.options("librdkafka")
    from confluent_kafka import Producer

    failed: list[object] = []
    producer = Producer(options)
    producer.produce("hello", b"confluent", on_delivery=lambda error, _message: failed.append(error))
    assert producer.flush(TIMEOUT_MS / 1000) == 0 and failed == [None]


def by_kafka_python(access: Access) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(**access.options("kafka-python"))
    producer.send("hello", b"kafka-python").get(TIMEOUT_MS / 1000)
    producer.close()


def by_aiokafka(access: Access) -> None:
    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        async with AIOKafkaProducer(**access.options("aiokafka")) as producer:
            await producer.send_and_wait("hello", b"aiokafka")

    asyncio.run(asyncio.wait_for(send(), TIMEOUT_MS / 1000))
