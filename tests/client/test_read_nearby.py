"""A consumer that names its rack reads where its leader sends it (KIP-392), and always gets on."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from fake_cluster import FakeCluster, TestClock
from virtual_time import run

from quorumlog.client.consumer import AsyncConsumer
from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest, ListOffsetsRequest
from quorumlog.records import Record, encode_batch
from quorumlog.rpc.transport import NotDelivered

LEADER, FOLLOWER, UNKNOWN = 1, 2, 9
BATCHES = 3
AGE_MS = 1_000


def filled(near: int = FOLLOWER) -> FakeCluster:
    """Broker 1 leads a log of one record in each batch, and sends readers in the south elsewhere."""
    cluster = FakeCluster(partitions=1)
    cluster.near["south"] = near
    for number in range(BATCHES):
        append(cluster, number)
    return cluster


def append(cluster: FakeCluster, number: int) -> None:
    cluster.topics["t"][0].append(encode_batch([Record(0, 5, None, b"%d" % number, ())]))


def make(cluster: FakeCluster, **options: Any) -> AsyncConsumer:
    options = {
        "bootstrap_servers": "b3", "client_rack": "south", "retry_backoff_ms": 20, "retry_backoff_max_ms": 50,
        "fetch_max_wait_ms": 10, "max_partition_fetch_bytes": 1, "auto_offset_reset": "none", **options,
    }  # fmt: skip
    return AsyncConsumer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


async def read(cluster: FakeCluster, **options: Any) -> float:
    """All that there is, once and in order. Returns how long it took, in seconds."""
    found: list[bytes | None] = []
    async with make(cluster, **options) as consumer:
        begun_s = asyncio.get_running_loop().time()
        await consumer.assign([("t", 0, 0)], stop=BATCHES)
        while not consumer.finished:
            found += [record.value for record in await consumer.poll()]
        took_s = asyncio.get_running_loop().time() - begun_s
    assert found == [b"%d" % number for number in range(BATCHES)]
    return took_s


def asked(cluster: FakeCluster, kind: type) -> int:
    return sum(isinstance(request, kind) for _, request in cluster.requests)


def fetches(cluster: FakeCluster) -> list[tuple[int, str]]:
    return [(node, request.rack) for node, request in cluster.requests if isinstance(request, FetchRequest)]


def test_it_reads_where_it_was_sent() -> None:
    cluster = filled()
    run(read(cluster))
    assert fetches(cluster) == [(LEADER, "south"), *[(FOLLOWER, "south")] * BATCHES]


def test_without_a_rack_it_reads_from_the_leader() -> None:
    cluster = filled()
    run(read(cluster, client_rack=""))
    assert fetches(cluster) == [(LEADER, "")] * BATCHES


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CORRUPT_MESSAGE,
    ],
    ids=lambda code: code.name,
)
def test_whatever_a_follower_refuses_the_leader_gives(code: ErrorCode) -> None:
    """Once without the rack, so that it answers with records, and no position is set by what a follower says."""
    cluster = filled()
    cluster.refusals[FOLLOWER] = code
    run(read(cluster))
    assert fetches(cluster) == [(LEADER, "south"), (FOLLOWER, "south"), (LEADER, "")] * BATCHES
    assert asked(cluster, ListOffsetsRequest) == 0


def test_a_follower_that_cannot_be_reached_is_left() -> None:
    cluster = filled()

    def lost(request: FetchRequest) -> Exception | None:
        return NotDelivered("the follower is down") if cluster.requests[-1][0] == FOLLOWER else None

    cluster.fault(FetchRequest, *[lost] * 2)
    run(read(cluster))
    assert fetches(cluster)[:3] == [(LEADER, "south"), (FOLLOWER, "south"), (LEADER, "")]


def test_a_broker_that_the_client_does_not_know_is_not_asked_for_again_at_once() -> None:
    """The client backs off, asks for metadata, and reads from the leader."""
    cluster = filled(near=UNKNOWN)
    run(read(cluster))
    assert fetches(cluster) == [(LEADER, "south"), (LEADER, "")] * BATCHES
    assert asked(cluster, MetadataRequest) >= BATCHES


def test_the_leader_is_asked_again_when_its_word_is_old() -> None:
    """Meanwhile another broker may be nearer."""
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster, metadata_max_age_ms=AGE_MS) as consumer:
            await consumer.assign([("t", 0, BATCHES)])
            assert await consumer.poll(timeout_ms=3 * AGE_MS + AGE_MS // 2) == []

    run(scenario())
    assert fetches(cluster).count((LEADER, "south")) == 4
    assert set(fetches(cluster)) == {(LEADER, "south"), (FOLLOWER, "south")}


def test_a_hung_follower_is_left_long_before_the_call_times_out() -> None:
    cluster = filled()
    cluster.hung.add(FOLLOWER)
    took_s = run(read(cluster, request_timeout_ms=60_000))
    assert took_s < 10
    assert fetches(cluster)[:3] == [(LEADER, "south"), (FOLLOWER, "south"), (LEADER, "")]
