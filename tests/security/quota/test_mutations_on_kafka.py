"""The quota of partitions that a client makes and deletes: an Apache Kafka refuses and holds back as we do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import Unavailable, get_kafka
from quorumlog.messages.admin import CreatePartitionsRequest, PartitionsOfTopic
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, TopicQuery
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.quotas import AlterClientQuotasRequest, QuotaAlteration, QuotaOp
from quorumlog.rpc.transport import Address, Connection, RpcError
from quorumlog.wire.transport import WireTransport
from tests.scenarios.one_node import LANE, RealNode

CALL_MS, START_S = 60_000, 120
SLACK_MS = 1_000  # what a busy machine takes between two requests is no debt any more
SMALL = {"default.replication.factor": 1, "offsets.topic.replication.factor": 1, "min.insync.replicas": 1}
EVERYBODY = (QuotaEntity(entity_type="user", entity_name=None),)
LIMIT = QuotaAlteration(entity=EVERYBODY, ops=(QuotaOp(key="controller_mutation_rate", value=2.0),))


def create(*sizes: int, names: str = "abc", **fields: Any) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(name=name, num_partitions=size, replication_factor=1)
        for name, size in zip(names, sizes, strict=False)
    )
    return CreateTopicsRequest(topics=topics, timeout_ms=30_000, **fields)


def delete(name: str, **fields: Any) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(TopicQuery(name=name),), timeout_ms=30_000, **fields)


def grow(name: str, count: int, **fields: Any) -> CreatePartitionsRequest:
    topic = PartitionsOfTopic(name=name, count=count)
    return CreatePartitionsRequest(topics=(topic,), timeout_ms=30_000, **fields)


OLDER: dict[str, Any] = {"takes_throttling": False}
# The burst is 22 partitions. Whoever is held back is served once there is no debt, so each step begins without one, but
# for the first one and those behind a request that is charged and not held back.
STEPS: tuple[Any, ...] = (
    create(20, 6, 1),
    create(3, names="d", **OLDER),
    create(5, names="e", validate_only=True),
    delete("d"),
    grow("a", 24),
    grow("a", 25),
    grow("a", 26, **OLDER),
    delete("a", **OLDER),
)


async def conversation(address: Address) -> list[tuple[list[int], int]]:
    """Of each step: the codes, and for how many ms the client is held back."""
    connection = WireTransport().connect(address, internal=False, client_id="tester")
    await limit(connection)
    found = []
    for step in STEPS:
        response = await connection.call(step, CALL_MS)
        results = response.results if isinstance(step, CreatePartitionsRequest) else response.topics
        found.append(([one.error_code for one in results], response.throttle_time_ms))
    await connection.close()
    return found


async def limit(connection: Connection) -> None:
    """Once the server has started."""
    async with asyncio.timeout(START_S):
        while True:
            try:
                answer = await connection.call(AlterClientQuotasRequest(entries=(LIMIT,)), CALL_MS)
                if [one.error_code for one in answer.entries] == [0]:
                    return
            except RpcError:
                await asyncio.sleep(0.2)


def test_both_refuse_and_hold_back_alike(tmp_path: Path) -> None:
    try:
        kafka = get_kafka()
    except Unavailable as error:
        pytest.skip(str(error))
    node = RealNode(tmp_path)
    try:
        ours = node.do(conversation(node.node.addresses[LANE]))
        peer = KafkaPeer(kafka, tmp_path / "kafka", nodes=1, changes=SMALL)
        try:
            peer.start()
            host, _, port = peer.bootstrap_servers.rpartition(":")
            theirs = node.do(conversation(Address(host, int(port))))
        finally:
            peer.close()
    finally:
        node.close()
    assert [codes for codes, _ in ours] == [codes for codes, _ in theirs], f"{ours}\n{theirs}"
    for (_, of_us), (_, of_kafka) in zip(ours, theirs, strict=True):
        assert (of_us > 0) == (of_kafka > 0) and abs(of_us - of_kafka) <= SLACK_MS, f"{ours}\n{theirs}"
    assert [codes for codes, _ in ours].count([89]) >= 1 and ours[0][0] == [0, 0, 89]
