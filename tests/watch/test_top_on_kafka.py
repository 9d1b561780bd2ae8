"""`quorumlog top --once` against an Apache Kafka: all that its protocol tells, and what changes instead of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import Unavailable, get_kafka
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main

SMALL = {"default.replication.factor": 1, "offsets.topic.replication.factor": 1, "min.insync.replicas": 1}
START_S = 120


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[str]:
    try:
        found = get_kafka()
    except Unavailable as error:
        pytest.skip(str(error))
    peer = KafkaPeer(found, tmp_path / "kafka", nodes=1, changes=SMALL)
    try:
        peer.start()
        yield peer.bootstrap_servers
    finally:
        peer.close()


def test_all_that_its_protocol_tells_is_shown(kafka: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(kafka) as cluster:

        def made() -> bool:
            try:
                cluster.admin.create_topic("orders", 2, 1, exist_ok=True)
            except (QuorumlogError, RpcError):
                return False
            return True

        wait_until(made, START_S, "Kafka to serve")
        with cluster.producer() as producer:
            for number in range(30):
                producer.send("orders", b"%d" % number, partition=0)
        cluster.admin.alter_group_offsets("billing", {("orders", 0): CommittedOffset(10)})
    assert main(["top", "--once", "--every", "0.5", "-o", "json", "-b", kafka]) == 0
    seen: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert seen["problems"] == [] and seen["not_read"] == {}
    assert (seen["quorum"]["leader"], [one["node_id"] for one in seen["quorum"]["members"]]) == (1, [1])
    (broker,) = seen["brokers"]
    assert broker["state"] == "serving" and broker["directories"][0]["replicas"] >= 2
    topic = next(one for one in seen["topics"] if one["topic"] == "orders")
    assert (topic["partitions"], topic["records_per_s"], topic["under_replicated"]) == (2, 0, 0)
    assert topic["size_bytes"] > 0 and topic["topic_id"]
    (group,) = seen["groups"]
    assert (group["group"], group["lag"], group["state"]) == ("billing", 20, "Empty")
    assert main(["top", "--once", "--every", "0.5", "-b", kafka]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("healthy  ") and "leader 1" in shown and "billing" in shown and "none in the last" in shown
