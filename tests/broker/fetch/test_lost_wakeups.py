"""A fetch that waits is woken by what came while it was reading from the disk, not only by what comes later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch, values_of

from broker.fetch import fetch_path
from broker.fetch.context import FetchContext
from broker.fetch.fetch_path import FetchParams
from broker.fetch.read_log import read_from_disk
from broker.fetch.targets import FetchTarget
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopic
from quorumlog.rpc.transport import Context

LONGEST_MS = 20_000
BOTH_BYTES = 130  # more than one batch of a short value, fewer than two
COLD, GROWING = 1, 0  # the partition that is read from the disk, and the one that gets a record meanwhile


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    """A leader of both partitions. While it reads from the disk, another record of the growing one is committed."""
    cluster = ReplicaCluster(tail_bytes=0)
    cluster.create_topic(partitions=2)
    for index in (GROWING, COLD):
        cluster.wait_led(1, index)
    cluster.produce(1, "cold", index=COLD)
    leader = cluster.nodes[1]
    grown: list[str] = []

    async def slowly(*arguments: Any) -> bytes:
        if not grown:
            grown.append("warm")
            await leader.produce_path.append(TOPIC_ID, GROWING, batch("warm"), acks=-1, timeout_ms=5_000)
        return await read_from_disk(*arguments)

    monkeypatch.setattr(fetch_path, "read_from_disk", slowly)
    return leader


def at_the_start(index: int) -> FetchPartition:
    return FetchPartition(index=index, fetch_offset=0, max_bytes=1 << 10)


def values(responses: Sequence[FetchPartitionResponse]) -> dict[int, list[str]]:
    return {one.index: values_of(bytes(one.records)) for one in responses}


def test_a_fetch_of_named_partitions(node: Node) -> None:
    async def fetch() -> tuple[dict[int, list[str]], float]:
        context = FetchContext(tuple(FetchTarget(TOPIC_ID, at_the_start(index)) for index in (GROWING, COLD)), None)
        began_s = asyncio.get_running_loop().time()
        responses, _ = await node.fetch_path.fetch(context, FetchParams(LONGEST_MS, BOTH_BYTES, 1 << 20))
        return values(responses), asyncio.get_running_loop().time() - began_s

    found, waited_s = node.run(fetch())
    assert found == {GROWING: ["warm"], COLD: ["cold"]}
    assert waited_s * 1000 < LONGEST_MS / 2


def test_a_fetch_of_a_session(node: Node) -> None:
    """Its first request finds the growing partition empty, the second one names the cold partition only."""

    async def ask(**options: Any) -> FetchResponse:
        request = FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **options})
        return await node._handle(cast(Context, None), request)

    async def fetch() -> tuple[dict[int, list[str]], float]:
        begun = await ask(topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(at_the_start(GROWING),)),), session_epoch=0)
        began_s = asyncio.get_running_loop().time()
        answer = await ask(
            topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(at_the_start(COLD),)),),
            session_id=begun.session_id,
            session_epoch=1,
            max_wait_ms=LONGEST_MS,
            min_bytes=BOTH_BYTES,
        )
        partitions = [one for topic in answer.topics for one in topic.partitions]
        return values(partitions), asyncio.get_running_loop().time() - began_s

    found, waited_s = node.run(fetch())
    assert found == {GROWING: ["warm"], COLD: ["cold"]}
    assert waited_s * 1000 < LONGEST_MS / 2
