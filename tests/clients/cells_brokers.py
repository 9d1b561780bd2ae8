"""kafka-cluster: the cluster's id, its brokers, and a broker that is unregistered. kafka-acls: refused."""

from __future__ import annotations

import pytest
from client_matrix import Place

from bench.peers import kafka_tools as kafka
from bench.peers.kafka_tools import ToolFailed, get_kafka
from quorumlog.client.blocking import Cluster
from quorumlog.messages.cluster import ClusterBroker
from quorumlog.testing.waiting import wait_until

LEAVES = 3
UNKNOWN = 99


def cluster(place: Place) -> None:
    """A broker that runs registers again by itself, with another epoch."""
    assert "Cluster ID: " in run(place, "cluster-id")
    said = run(place, "list-endpoints", "--include-fenced-brokers")
    assert [row.split()[0] for row in said.splitlines()[1:]] == ["1", "2", "3"] and "unfenced" in said
    with Cluster(place.servers) as client:
        before = client.admin.describe_cluster().brokers[LEAVES - 1]
        with pytest.raises(ToolFailed, match="BrokerIdNotRegistered"):
            run(place, "unregister", "--id", str(UNKNOWN))
        assert f"Broker {LEAVES} is no longer registered" in run(place, "unregister", "--id", str(LEAVES))
        wait_until(lambda: _is_back(client, before), 30, f"broker {LEAVES} registered again")


def _is_back(client: Cluster, before: ClusterBroker) -> bool:
    found = [broker for broker in client.admin.describe_cluster().brokers if broker.node_id == LEAVES]
    return bool(found) and not found[0].fenced and found[0].broker_epoch > before.broker_epoch


def acls(place: Place) -> None:
    """Kafka without an authorizer answers the same."""
    rule = ("--allow-principal", "User:x", "--operation", "Read", "--topic", place.topic)
    for verb in (("--list",), ("--add", *rule)):
        with pytest.raises(ToolFailed, match="SecurityDisabledException: no authorizer is on"):
            get_kafka().run(kafka.ACLS, "--bootstrap-server", place.servers, *verb)


def run(place: Place, command: str, *arguments: str) -> str:
    return get_kafka().run(kafka.CLUSTER, command, *arguments, "--bootstrap-server", place.servers)
