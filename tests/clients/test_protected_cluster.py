"""Kafka's own tools at a cluster of `up --tls`, by the file that it writes."""

from __future__ import annotations

from pathlib import Path

import cells_java
import pytest
from client_matrix import LISTED_SKIPS

from bench.peers import kafka_tools as kafka
from quorumlog.testing.cluster import LocalCluster


def test_tools_of_kafka_log_in_by_the_file_that_is_written(tmp_path: Path) -> None:
    """Unmodified: the file works as it stands, and tokens are off in the words of Kafka's own tool."""
    if missing := cells_java.missing():
        assert missing in LISTED_SKIPS
        pytest.skip(missing)
    with LocalCluster(tmp_path / "cluster", nodes=1, tls=True) as cluster, cluster.topic("hello") as topic:
        java = cluster.nodes.layout.root / "client.properties"
        file = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(java))
        tool = kafka.get_kafka()
        assert topic.name in tool.run(kafka.TOPICS, *file, "--list").split()
        with pytest.raises(kafka.ToolFailed) as refused:
            tool.run("org.apache.kafka.tools.DelegationTokenCommand", *file, "--describe")
        assert "DelegationTokenDisabledException: Delegation Token feature is not enabled" in refused.value.output
