"""The loads of groups and transactions that are measured beside Kafka, on a small cluster of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from bench.kafka import groups as kafka_groups
from bench.kafka.clients import create_topic
from bench.kafka.transactions import fill, latencies_ms, our_rows_per_s, rdkafka_rows_per_s
from bench.raw.client import TOPIC
from bench.raw.consumer_member import ConsumerGroup
from bench.raw.member import Group
from quorumlog.testing import LocalCluster

PARTITIONS, SESSION_MS = 6, 2_000
MEMBERS = 3


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = {
        **{name: str(value) for name, value in kafka_groups.SETTINGS.items()},
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    }
    with LocalCluster(tmp_path_factory.mktemp("loads") / "cluster", config=config) as cluster:
        found = cluster.bootstrap_servers
        create_topic(AdminClient({"bootstrap.servers": found}), TOPIC, PARTITIONS)
        yield found


def test_both_readers_count_what_was_committed_and_nothing_else(servers: str) -> None:
    create_topic(AdminClient({"bootstrap.servers": servers}), "filled", 2)
    filled = fill(servers, "filled", 10_000, bytes(10))  # the tenth transaction is aborted
    assert filled.committed == 10_000
    assert asyncio.run(our_rows_per_s(servers, filled)) > 0
    assert rdkafka_rows_per_s(servers, filled) > 0


def test_every_record_of_a_load_in_transactions_is_timed(servers: str) -> None:
    create_topic(AdminClient({"bootstrap.servers": servers}), "due", 1)
    found = latencies_ms(servers, "due", "due", rate=200, transaction_ms=100, seconds=1.0)
    assert len(found) == 200
    assert min(found) > 0


def test_members_of_both_protocols_join_and_take_over_from_one_that_dies(servers: str) -> None:
    async def consumer() -> float:
        group = await ConsumerGroup.connected(servers, "modern", MEMBERS, PARTITIONS)
        await group.join()
        seconds = await group.lose_one()
        await group.end()
        return seconds

    async def classic() -> None:
        group = await Group.connected(servers, "classic", MEMBERS)
        await group.join()
        await group.end()

    asyncio.run(classic())
    assert asyncio.run(consumer()) > SESSION_MS / 2_000  # its last heartbeat was at most one interval before
