"""A fetch that waits is woken by what came while it was reading from the disk, not only by what comes later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch, values_of

from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.fetch import fetch_path
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.read_log import read_from_disk
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_storage.log.log_view import LogPart

LONGEST_MS = 20_000
BOTH_BYTES = 130  # more than one batch of a short value, fewer than two
READERS = [pytest.param(None, id="consumer"), pytest.param(ReplicaState(replica_id=2, broker_epoch=-1), id="follower")]
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

    async def slowly(*arguments: Any) -> LogPart:
        if not grown:
            grown.append("warm")
            await leader.produce_path.append(TOPIC_ID, GROWING, batch("warm"), acks=-1, timeout_ms=5_000)
        return await read_from_disk(*arguments)

    monkeypatch.setattr(fetch_path, "read_from_disk", slowly)
    return leader


def at_the_start(index: int) -> FetchPartition:
    return FetchPartition(index=index, fetch_offset=0, max_bytes=1 << 10, current_leader_epoch=0)


def values(responses: Sequence[FetchPartitionResponse]) -> dict[int, list[str]]:
    return {one.index: values_of(bytes(one.records)) for one in responses}


@pytest.mark.parametrize("replica", READERS)
def test_a_fetch_of_named_partitions(node: Node, replica: ReplicaState | None) -> None:
    async def fetch() -> tuple[dict[int, list[str]], float]:
        targets = tuple(FetchTarget(TOPIC_ID, at_the_start(index)) for index in (GROWING, COLD))
        context = FetchContext(targets, replica)
        began_s = asyncio.get_running_loop().time()
        responses, _ = await node.fetch_path.fetch(context, FetchParams(LONGEST_MS, BOTH_BYTES, 1 << 20))
        return values(responses), asyncio.get_running_loop().time() - began_s

    found, waited_s = node.run(fetch())
    assert found == {GROWING: ["warm"], COLD: ["cold"]}
    assert waited_s * 1000 < LONGEST_MS / 2


@pytest.mark.parametrize("replica", READERS)
def test_a_fetch_of_a_session(node: Node, replica: ReplicaState | None) -> None:
    """Its first request finds the growing partition empty, the second one names the cold partition only."""

    async def ask(**options: Any) -> FetchResponse:
        request = FetchRequest(
            **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "replica": replica, **options}
        )
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
