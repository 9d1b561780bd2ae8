"""A node whose clients have no listener for gRPC: our own client has transactions by Kafka's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog import Cluster
from tests.live.one_process import OneProcess, formatted_config

LANE_ALONE = """\
lane.listeners=CLIENT
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with OneProcess(formatted_config(tmp_path, LANE_ALONE)) as process, Cluster(process.address) as cluster:
        yield cluster


def test_a_transactional_producer_needs_no_grpc(cluster: Cluster) -> None:
    levels = {one.name: one.finalized_level for one in cluster.admin.describe_features().features}
    assert levels["transaction.version"] == 2 and levels["metadata.version"] > 2
    cluster.admin.create_topic("t", partitions=1)
    with cluster.producer(transactional_id="writer") as producer:
        with producer.transaction():
            producer.send("t", b"committed")
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send("t", b"aborted")
            raise ZeroDivisionError
        with producer.transaction():
            producer.send("t", b"after")
    with cluster.consumer("t", stop="latest", isolation_level="read_committed") as consumer:
        assert [record.value for record in consumer] == [b"committed", b"after"]
