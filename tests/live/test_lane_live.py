"""The lane on real nodes: a plain Kafka client, our clients on either transport, and a forged replica."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from quorumlog.client.blocking import Cluster
from quorumlog.messages.cluster import MetadataRequest, TopicQuery
from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from quorumlog.rpc.transport import Address
from quorumlog.testing import LocalCluster
from quorumlog.wire.transport import WireTransport

COUNT = 2_000
CALL_MS = 10_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("lane") / "cluster") as cluster:
        yield cluster


def servers(cluster: LocalCluster) -> str:
    return cluster.nodes.layout.bootstrap_servers


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_kafka_client_writes_and_reads(cluster: LocalCluster, compression: str | None) -> None:
    async def scenario(topic: str) -> list[bytes]:
        async with AIOKafkaProducer(
            bootstrap_servers=servers(cluster), acks="all", compression_type=compression
        ) as producer:
            sent = [await producer.send(topic, b"%d" % number, partition=number % 3) for number in range(COUNT)]
            for delivery in sent:
                await delivery
        found: list[bytes] = []
        async with AIOKafkaConsumer(bootstrap_servers=servers(cluster), auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, index) for index in range(3)])
            while len(found) < COUNT:
                for records in (await consumer.getmany(timeout_ms=1_000)).values():
                    found += [record.value for record in records]
        return found

    with cluster.topic("kafka", partitions=3) as topic:
        found = asyncio.run(asyncio.wait_for(scenario(topic.name), 60))
    assert sorted(map(int, found)) == list(range(COUNT))


@pytest.mark.parametrize("wire", ["auto", "grpc"])
def test_our_own_clients_work_over_either_transport(cluster: LocalCluster, wire: str) -> None:
    with cluster.topic("own", partitions=2) as topic, Cluster(servers(cluster), transport=wire) as client:
        with client.producer() as producer:
            for number in range(100):
                producer.send(topic.name, b"%d" % number)
        consumer = client.consumer(topic.name, start="earliest", stop="latest")
        assert sorted(int(record.value) for record in consumer) == list(range(100))
        assert client.admin.describe_cluster().state_hash


def test_a_forged_replica_at_the_client_port_changes_nothing(cluster: LocalCluster) -> None:
    async def scenario(name: str) -> tuple[Any, list[Any]]:
        transport = WireTransport()
        address = address_of(servers(cluster).split(",")[0])
        connection = transport.connect(address, internal=False)
        query = MetadataRequest(all_topics=False, topics=(TopicQuery(name=name),))
        before = await connection.call(query, CALL_MS)
        answers = []
        for broker in before.brokers:
            forged = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=100,
                replica=ReplicaState(replica_id=before.topics[0].partitions[0].replicas[1], broker_epoch=-1),
                topics=(
                    FetchTopic(
                        topic_id=before.topics[0].topic_id,
                        partitions=(FetchPartition(index=0, fetch_offset=10**6, max_bytes=100),),
                    ),
                ),
            )
            other = transport.connect(Address(broker.host, broker.port), internal=False)
            answers.append(await other.call(forged, CALL_MS))
            await other.close()
        await connection.close()
        return before, answers

    with cluster.topic("forged") as topic:
        topic.produce(["a", "b"])
        _, answers = asyncio.run(scenario(topic.name))
        assert [answer.error_code for answer in answers] == [31] * len(answers)
        assert topic.read_all(2) == [b"a", b"b"]


STRANGERS = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n\r\n", struct.pack(">i", -1) + b"x"]


@pytest.mark.parametrize("data", STRANGERS, ids=["TLS", "HTTP", "negative"])
def test_a_stranger_at_the_port_is_disconnected_and_logged(cluster: LocalCluster, data: bytes) -> None:
    files = cluster.nodes.layout.nodes[0]
    before = _told(files.log)
    address = address_of(files.client_address)
    with socket.create_connection((address.host, address.port), 5) as stranger:
        stranger.sendall(data)
        try:
            assert stranger.recv(100) == b""
        except ConnectionResetError:
            pass
    assert _told(files.log) == before + 1


def _told(log: Path) -> int:
    """Another protocol is told of once a minute for each address, wrong frames each time."""
    text = log.read_text()
    return text.count("closed the connection of") + text.count("refused 127.0.0.1")


def address_of(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host, int(port))
