"""First and end offsets of many partitions at once: how few requests that takes, and what a moved leader costs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import ListOffsetsRequest

PARTITIONS = 6
KEYS = [("t", index) for index in range(PARTITIONS)]


def admin_of(cluster: FakeCluster) -> AsyncAdmin:
    return AsyncAdmin(
        cluster, {"bootstrap.servers": "b1:9092", "retry.backoff.ms": 1}, clock=TestClock(), rng=random.Random(1)
    )


def filled() -> FakeCluster:
    cluster = FakeCluster(partitions=PARTITIONS)
    for index, log in enumerate(cluster.topics["t"]):
        log.start, log.end = index, 10 * index
    return cluster


WANTED = {index: (index, 10 * index) for index in range(PARTITIONS)}


def ask(cluster: FakeCluster, before: str = "") -> dict[int, tuple[int, int]]:
    """(first, end) by partition. before: the topic that is described first."""

    async def found() -> dict[int, tuple[int, int]]:
        admin = admin_of(cluster)
        if before:
            await admin.describe_topic(before)
            cluster.move("t", 0, 2)
        ranges = await admin.list_offset_ranges(KEYS)
        await admin.close()
        return {key[1]: (first.offset, end.offset) for key, (first, end) in ranges.items()}

    return asyncio.run(found())


def counts(cluster: FakeCluster) -> Counter[type]:
    return Counter(type(request) for _, request in cluster.requests)


def test_each_leader_is_asked_twice_and_metadata_once() -> None:
    cluster = filled()
    assert ask(cluster) == WANTED
    assert counts(cluster) == {MetadataRequest: 1, ListOffsetsRequest: 6}


def test_the_metadata_of_a_description_are_used_and_renewed_when_a_leader_has_moved() -> None:
    cluster = filled()
    assert ask(cluster, before="t") == WANTED
    assert counts(cluster)[MetadataRequest] == 2, "one of the description, one after the refusal"


def test_nothing_is_asked_about_no_partitions() -> None:
    cluster = filled()

    async def none() -> object:
        admin = admin_of(cluster)
        found = await admin.list_offset_ranges([])
        await admin.close()
        return found

    assert asyncio.run(none()) == {}
    assert not cluster.requests
