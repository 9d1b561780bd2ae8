"""`@pytest.mark.quorumlog` as an application uses it: real nodes, struck by the seed while a producer works."""

from __future__ import annotations

import time

import pytest

from quorumlog.testing import LocalCluster

FAULTS_S = 25.0


@pytest.mark.quorumlog(faults="partition,pause,kill", seed=7)
def test_what_is_acknowledged_outlives_every_fault(quorumlog_cluster: LocalCluster) -> None:
    cluster = quorumlog_cluster
    assert cluster.faults is not None
    with cluster.topic("orders", partitions=3) as topic:
        sent, until = 0, time.monotonic() + FAULTS_S
        while time.monotonic() < until:
            topic.produce([f"{number}" for number in range(sent, sent + 20)])
            sent += 20
        cluster.faults.stop()
        assert {line.split()[2] for line in cluster.faults.done} == {"partition", "pause", "kill"}
        cluster.wait_healthy()
        cluster.wait_in_sync(topic)
        assert sorted(map(int, topic.read_all(sent))) == list(range(sent))
