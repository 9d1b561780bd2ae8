"""On real nodes: `group lag` and the series of each node, before and after a failover of the coordinator.

An aborted transaction, a topic that is made again, a group that reads by assignment and is deleted.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable

import pytest
from cells_confluent import produce
from client_matrix import Place
from confluent_kafka import Producer

from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.testing.cluster import LocalCluster

WITHIN_S = 20


def lags(cluster: LocalCluster, group: str) -> dict[int, dict[str, int]]:
    """By node that tells any: topic and lag."""
    found: dict[int, dict[str, int]] = {}
    for node in cluster.nodes.layout.nodes:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{node.ports.admin}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            continue  # it is down
        for line in text.splitlines():
            if line.startswith(f'quorumlog_group_lag{{group="{group}",topic="'):
                labels, value = line.rsplit(" ", 1)
                found.setdefault(node.node_id, {})[labels.split('topic="')[1][:-2]] = int(float(value))
    return found


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not what():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.2)


def told(cluster: LocalCluster, group: str, want: list[dict[str, int]]) -> None:
    """Of all nodes together, those that say anything say this."""
    until(lambda: [*lags(cluster, group).values()] == want)


@pytest.mark.parametrize("failover", [False, True], ids=["the same coordinator", "after a failover"])
def test_lag(cluster: LocalCluster, failover: bool) -> None:
    admin = cluster.client.admin
    with cluster.topic("lag", replication=3) as topic, cluster.topic("stays", replication=3) as other:
        group, name, servers = f"reader-{failover}", topic.name, cluster.bootstrap_servers
        produce(Place(servers, name), [b"x"] * 10)
        produce(Place(servers, other.name), [b"x"] * 3)
        aborting = Producer({"bootstrap.servers": servers, "transactional.id": group})
        aborting.init_transactions(30)
        aborting.begin_transaction()
        for _ in range(50):
            aborting.produce(name, b"y", partition=0)
        aborting.flush(30)
        aborting.abort_transaction(30)
        admin.alter_group_offsets(group, {(name, 0): CommittedOffset(4), (other.name, 0): CommittedOffset(0)})
        until(lambda: admin.group_lag(group).partitions[name, 0].distance == 57)
        lag = admin.group_lag(group)
        assert (lag.records, lag.distance, lag.is_estimate) == (6 + 3, 57 + 3, False)
        assert lag.behind_ms is not None and 0 < lag.behind_ms < 120_000
        told(cluster, group, [{name: 6, other.name: 3}])
        coordinator = admin.describe_group(group).coordinator
        if failover:
            cluster.kill(coordinator)
            until(lambda: admin.describe_group(group).coordinator != coordinator)
            told(cluster, group, [{name: 6, other.name: 3}])
            cluster.restart(coordinator)
        admin.delete_topic(name)
        until(lambda: name not in str(lags(cluster, group)))
        admin.create_topic(name, 1, 3)
        produce(Place(servers, name), [b"x"] * 90)
        assert (name, 0) not in admin.group_lag(group).partitions and admin.group_lag(group).records == 3
        told(cluster, group, [{other.name: 3}])
        admin.delete_group(group)
        until(lambda: lags(cluster, group) == {})  # a page is kept for a second
        assert admin.group_lag(group).state == "Dead"
