"""A reader that was told who leads: it asks the leader at once, and is told all that metadata would have told."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any

import pytest
from fake_cluster import TOPIC_ID, FakeCluster, TestClock
from virtual_time import run

from quorumlog.client.cluster.metadata_cache import LeaderPlace, TopicLife
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import TopicReplaced
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest
from quorumlog.records import Record, encode_batch
from quorumlog.rpc.transport import Address

NEW_ID = b"n" * 16
KEY = ("t", 0)
LIFE = {"t": TopicLife(TOPIC_ID, 100)}
NOBODY = Address("b9", 9092)


def filled(records: int = 35) -> FakeCluster:
    """Broker 1 leads in epoch 1."""
    cluster = FakeCluster(partitions=1)
    cluster.metadata_offset = 100
    write(cluster, records)
    return cluster


def write(cluster: FakeCluster, records: int) -> None:
    made = [Record(offset=i, timestamp_ms=5, key=None, value=b"%d" % i) for i in range(records)]
    cluster.topics["t"][0].append(encode_batch(made))


def told(cluster: FakeCluster, *, leader: int = 1, epoch: int = 1, address: Address | None = None) -> Any:
    return {KEY: LeaderPlace(leader, epoch, address or cluster.brokers[leader])}


async def read(cluster: FakeCluster, records: int = 35, **given: Any) -> list[bytes | None]:
    options: Any = {
        "bootstrap_servers": "b2", "retry_backoff_ms": 2, "retry_backoff_max_ms": 5, "fetch_max_wait_ms": 10,
        "auto_offset_reset": "none",
    }  # fmt: skip
    found: list[bytes | None] = []
    async with AsyncConsumer(cluster, clock=TestClock(), rng=random.Random(1), **options) as consumer:  # type: ignore[arg-type]
        await consumer.assign([(*KEY, 0)], stop=records, **given)
        while not consumer.finished:
            found += [record.value for record in await consumer.poll()]
    return found


def asked(cluster: FakeCluster, kind: type) -> list[int]:
    return [node for node, request in cluster.requests if isinstance(request, kind)]


def played(scenario: Coroutine[Any, Any, list[bytes | None]]) -> None:
    assert run(scenario) == [b"%d" % i for i in range(35)]


def test_nobody_is_asked_for_metadata() -> None:
    cluster = filled()
    played(read(cluster, lives=LIFE, leaders=told(cluster)))
    assert asked(cluster, MetadataRequest) == [] and set(asked(cluster, FetchRequest)) == {1}


@pytest.mark.parametrize(
    "given",
    [{}, {"leaders": {KEY: LeaderPlace(1, 1, Address("b1", 9092))}}, {"lives": {"t": TopicLife(b"")}}],
    ids=["nothing was told", "of a life that nobody names", "a cluster without ids"],
)
def test_otherwise_metadata_are_asked_for_once(given: dict[str, Any]) -> None:
    """An end that is a number needs none."""
    cluster = filled()
    played(read(cluster, **{"leaders": told(cluster), **given} if "lives" in given else given))
    assert len(asked(cluster, MetadataRequest)) == 1


def test_a_leader_that_leads_no_more_says_so() -> None:
    cluster = filled()
    wrong = told(cluster)
    cluster.move("t", 0, 3)
    played(read(cluster, lives=LIFE, leaders=wrong))
    assert asked(cluster, FetchRequest)[0] == 1 and asked(cluster, FetchRequest)[-1] == 3
    assert asked(cluster, MetadataRequest)


def test_a_leader_that_is_not_there_is_looked_for() -> None:
    cluster = filled()
    played(read(cluster, lives=LIFE, leaders=told(cluster, leader=9, address=NOBODY)))
    assert asked(cluster, MetadataRequest) and asked(cluster, FetchRequest)[-1] == 1


def test_a_leader_of_an_older_epoch_than_the_record_before_is_not_asked() -> None:
    cluster = filled()
    wrong = told(cluster, leader=3)
    cluster.move("t", 0, 2)
    played(read(cluster, lives=LIFE, leaders=wrong, epochs={KEY: 2}))
    assert set(asked(cluster, FetchRequest)) == {2}


@pytest.mark.parametrize("metadata_offset", [100, -1], ids=["metadata say how far they reach", "they do not"])
def test_a_topic_that_was_made_anew_since_is_told_by_name(metadata_offset: int) -> None:
    cluster = filled()
    cluster.metadata_offset = metadata_offset
    former = told(cluster)
    cluster.make_anew("t", NEW_ID, 1)
    write(cluster, 81)
    lives = {"t": TopicLife(TOPIC_ID, metadata_offset)}
    with pytest.raises(TopicReplaced, match="deleted and made again") as error:
        run(read(cluster, lives=lives, leaders=former))
    assert error.value.new_id == NEW_ID
