"""Administration on three real processes, over gRPC: partitions, settings, deleted records, and queries."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from quorumlog.client.administration.quotas import QuotaChange
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.client.offsets import EARLIEST
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import DescribeTopicPartitionsRequest, FindCoordinatorRequest, ListGroupsRequest
from quorumlog.messages.fetch import (
    EpochPartition,
    EpochTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetForLeaderEpochRequest,
)
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from tests.rules import rule


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("admin") / "cluster") as cluster:
        yield cluster


def fill(client: Cluster, topic: str, values: int, partitions: int = 1) -> None:
    client.admin.create_topic(topic, partitions=partitions, replication=3)
    with client.producer() as producer:
        for number in range(values):
            producer.send(topic, b"v%d" % number, partition=number % partitions).result(10)


def ask(nodes: LocalCluster, node_id: int, *requests: Any) -> list[Any]:
    """Sends requests to one broker, one after the other, and returns the responses."""
    with Cluster(nodes.bootstrap_servers) as client:
        (broker,) = [one for one in client.admin.describe_cluster().brokers if one.node_id == node_id]
    by_name = {endpoint.name: endpoint for endpoint in broker.endpoints}
    speaks_grpc = by_name.get("GRPC", by_name.get("CLIENT"))
    assert speaks_grpc is not None, by_name
    return asyncio.run(_ask(Address(speaks_grpc.host, speaks_grpc.port), requests))


async def _ask(where: Address, requests: tuple[Any, ...]) -> list[Any]:
    transport = GrpcTransport(None)
    connection = transport.connect(where, internal=False, client_id="test")
    try:
        return [await connection.call(request, 10_000) for request in requests]
    finally:
        await connection.close()


def test_a_topic_grows_and_every_partition_takes_records(nodes: LocalCluster) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        fill(client, "grows", 2)
        client.admin.create_partitions("grows", 3)
        wait_until(lambda: all(p.leader_id >= 0 for p in _partitions(client, "grows", 3)), 10, "three leaders")
        with client.producer() as producer:
            assert [producer.send("grows", b"x", partition=index).result(10).offset for index in range(3)] == [2, 0, 0]
        with pytest.raises(RequestFailed) as refused:
            client.admin.create_partitions("grows", 2)
        assert refused.value.code is ErrorCode.INVALID_PARTITIONS


def _partitions(client: Cluster, topic: str, count: int) -> tuple[Any, ...]:
    """A placeholder without a leader until there are `count` partitions."""
    found = client.admin.describe_topic(topic).partitions
    assert len(found) <= count
    return found if len(found) == count else (type("Missing", (), {"leader_id": -1}),)


@rule("storage 7.14", "log 8.9")
def test_settings_reach_partitions_that_are_in_use(nodes: LocalCluster) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        fill(client, "settings", 1)
        client.admin.alter_configs("settings", {"max.message.bytes": "200"})

        def refused() -> bool:
            with client.producer() as producer:
                try:
                    producer.send("settings", b"x" * 300).result(10)
                except QuorumlogError:
                    return True
            return False

        wait_until(refused, 10, "the smaller limit")
        client.admin.alter_configs("settings", {"max.message.bytes": None})
        wait_until(lambda: not refused(), 10, "the default limit")
        with pytest.raises(RequestFailed, match="did you mean retention"):
            client.admin.alter_configs("settings", {"retention.mss": "1"})


def test_deleted_records_stay_deleted(nodes: LocalCluster) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        fill(client, "deleted", 6)
        assert client.admin.delete_records({("deleted", 0): 4}) == {("deleted", 0): 4}
        for node_id in nodes.nodes.ids:
            nodes.kill(node_id)
        nodes.nodes.start()
        nodes.wait_healthy()
    with Cluster(nodes.bootstrap_servers) as client:
        assert client.admin.list_offsets({("deleted", 0): EARLIEST})["deleted", 0].offset == 4
        kept = [record.value for record in client.consumer("deleted", start="earliest", stop="latest")]
        assert kept == [b"v4", b"v5"]
        with pytest.raises(RequestFailed) as refused:
            client.admin.delete_records({("deleted", 0): 100})
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@rule("storage 7.15")
def test_log_directories_report_sizes_and_free_space(nodes: LocalCluster) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        fill(client, "sizes", 4)
        found = client.admin.describe_log_dirs()
        assert sorted(found) == nodes.nodes.ids
        for (directory,) in found.values():
            sizes = {topic.name: topic.partitions for topic in directory.topics}
            assert sizes["sizes"][0].size_bytes > 4 * 61 and 0 < directory.usable_bytes <= directory.total_bytes


@rule("storage 5.5")
def test_producer_ids_are_unique(nodes: LocalCluster) -> None:
    taken = [ask(nodes, node_id, *[InitProducerIdRequest()] * 3) for node_id in nodes.nodes.ids]
    ids = [response.producer_id for of_node in taken for response in of_node]
    assert all(response.error_code == 0 for of_node in taken for response in of_node)
    assert len(set(ids)) == 9 and min(ids) >= 0


def test_a_fetch_session(nodes: LocalCluster) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        fill(client, "session", 1)
    leader = nodes.leader_of("session", 0)

    def fetch(session_id: int, epoch: int, *wanted: FetchTopic) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=wanted, session_id=session_id, session_epoch=epoch
        )

    partition = FetchPartition(index=0, fetch_offset=1, max_bytes=1000)
    (first,) = ask(nodes, leader, fetch(0, 0, FetchTopic(topic_id=b"", name="session", partitions=(partition,))))
    assert first.session_id > 0 and first.topics[0].partitions[0].high_watermark == 1
    same, replayed = ask(nodes, leader, fetch(first.session_id, 1), fetch(first.session_id, 1))
    assert (same.session_id, same.topics) == (first.session_id, ())
    assert replayed.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_queries(nodes: LocalCluster) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        fill(client, "asked", 3)
    leader = nodes.leader_of("asked", 0)
    epoch = EpochTopic(name="asked", partitions=(EpochPartition(index=0, leader_epoch=0),))
    ends, page, groups, coordinator = ask(
        nodes,
        leader,
        OffsetForLeaderEpochRequest(topics=(epoch,)),
        DescribeTopicPartitionsRequest(topics=("asked",)),
        ListGroupsRequest(),
        FindCoordinatorRequest(keys=("group",)),
    )
    assert (ends.topics[0].partitions[0].leader_epoch, ends.topics[0].partitions[0].end_offset) == (0, 3)
    assert page.topics[0].partitions[0].leader_id == leader
    assert (groups.error_code, groups.groups) == (0, ())
    assert coordinator.coordinators[0].error_code == 0


def test_the_commands(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        fill(client, "commands", 4, partitions=2)

    def run(*words: str) -> Any:
        assert main([*words, "-b", nodes.bootstrap_servers, "-o", "json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    assert run("topic", "alter", "commands", "--partitions", "3", "-c", "retention.ms=1000")["altered"]
    assert run("config", "set", "commands", "flush.ms=5")["changes"] == {"flush.ms": "5"}
    run("config", "unset", "commands", "retention.ms")
    wait_until(
        lambda: [row["key"] for row in run("config", "get", "commands") if row["source"] == "topic"] == ["flush.ms"],
        10,
        "the settings",
    )
    for word, policy in (("+=compact", "delete,compact"), ("-=delete", "compact")):
        run("config", "set", "commands", f"cleanup.policy{word}")
        wait_until(
            lambda policy=policy: run("config", "get", "commands", "cleanup.policy")[0]["value"] == policy,
            10,
            "the list",
        )
    assert main(["config", "set", "commands", "flush.ms=5", "flush.ms+=6", "-b", nodes.bootstrap_servers]) == 2
    run("config", "unset", "commands", "cleanup.policy")
    run("config", "set", "default", "--entity-type", "broker", "log.retention.ms=9")
    wait_until(
        lambda: run("config", "get", "1", "log.retention.ms", "--entity-type", "broker")[0]["value"] == "9",
        10,
        "the brokers' setting",
    )
    wait_until(lambda: len(run("topic", "offsets", "commands")) == 3, 10, "three partitions")
    assert run("topic", "truncate", "commands", "--all", "-p", "1") == [{"partition": 1, "first_offset": 2}]
    rows = run("topic", "offsets", "commands", "--at", "0")
    assert [(row["first_offset"], row["end_offset"], row["offset_at"]) for row in rows[:2]] == [(0, 2, 0), (2, 2, None)]
    assert main(["topic", "truncate", "commands", "-b", nodes.bootstrap_servers]) == 2
    assert main(["config", "set", "commands", "flush.mss=5", "-b", nodes.bootstrap_servers]) == 2


def test_replicas_are_placed_by_hand(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> int:
        return main(["topic", *words, "-b", nodes.bootstrap_servers])

    assert run("create", "placed", "--replica-assignment", "3:1,2:3") == 0
    assert run("alter", "placed", "--partitions", "3", "--replica-assignment", "1:2") == 0
    with Cluster(nodes.bootstrap_servers) as client:
        found = client.admin.describe_topic("placed").partitions
        assert [tuple(one.replicas) for one in found] == [(3, 1), (2, 3), (1, 2)]
    capsys.readouterr()
    assert run("create", "elsewhere", "--replica-assignment", "1:9") == 2
    assert "broker 9 is not registered" in capsys.readouterr().err


def test_users_and_quotas_are_set_and_shown_by_every_broker(
    nodes: LocalCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command line, over the wire that the client chooses; a wait ends once each broker has applied it."""
    monkeypatch.setenv("PW", 'a;b"c\\d,e=%+f')
    servers = nodes.bootstrap_servers.split(",")

    def run(*words: str, at: str = servers[0]) -> Any:
        assert main([*words, "-b", at, "-o", "json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    def everywhere(*words: str) -> list[Any]:
        return [run(*words, at=at) for at in servers]

    run("user", "create", "ops,eu=1", "-m", "SCRAM-SHA-256", "-m", "SCRAM-SHA-512", "--password", "env:PW")
    made = [
        {"user": "ops,eu=1", "mechanism": mechanism, "iterations": 4096}
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    wait_until(lambda: everywhere("user", "list") == [{"credentials": made}] * 3, 10, "the user is everywhere")
    run("user", "delete", "ops,eu=1", "--yes")
    wait_until(lambda: everywhere("user", "list") == [{"credentials": []}] * 3, 10, "the user is gone everywhere")
    run("quota", "set", "producer_byte_rate=1024", "--user", "ops,eu=1", "--default", "client-id")
    entity = {"client-id": None, "user": "ops,eu=1"}
    shown = {"quotas": [{"entity": entity, "quota": "producer_byte_rate", "value": 1024.0}]}
    wait_until(lambda: everywhere("quota", "list") == [shown] * 3, 10, "the quota is everywhere")
    run("quota", "delete", "--user", "ops,eu=1", "--default", "client-id", "--all")
    wait_until(lambda: everywhere("quota", "list") == [{"quotas": []}] * 3, 10, "the quota is gone everywhere")


def test_a_quota_slows_a_producer_and_a_reader_down_and_loses_nothing(nodes: LocalCluster) -> None:
    """Bursts of ten seconds' worth pass at once; the rest comes at the quota's rate, and every record comes."""
    rate, count, size = 100_000, 140, 10_000  # 14 seconds' worth
    entity = {"client-id": "held"}
    with Cluster(nodes.bootstrap_servers) as client:
        client.admin.create_topic("held", partitions=1, replication=1)
        limits = {"producer_byte_rate": float(rate), "consumer_byte_rate": float(rate)}
        client.admin.alter_client_quotas([QuotaChange(entity, limits)])

    def known_at(server: str) -> bool:
        with Cluster(server) as asked:
            return bool(asked.admin.describe_client_quotas({"client-id": "held"}))

    servers = nodes.bootstrap_servers.split(",")
    wait_until(lambda: all(map(known_at, servers)), 10, "the quota is everywhere")
    with Cluster(nodes.bootstrap_servers, client_id="held") as held:
        begun = time.monotonic()
        with held.producer(linger_ms=0) as producer:
            for number in range(count):
                producer.send("held", b"%09d" % number + bytes(size), partition=0).result(60)
        produced_s = time.monotonic() - begun
        begun = time.monotonic()
        with held.consumer("held", stop="latest", fetch_max_bytes=rate) as consumer:
            found = [(record.value or b"")[:9] for record in consumer]
        consumed_s = time.monotonic() - begun
    with Cluster(nodes.bootstrap_servers) as client:
        client.admin.alter_client_quotas([QuotaChange(entity, dict.fromkeys(limits))])
    assert found == [b"%09d" % number for number in range(count)]
    least_s = count * size / rate - 11
    assert produced_s >= least_s, f"{produced_s} s"
    assert consumed_s >= least_s, f"{consumed_s} s"
