"""What a broker tells the controller of the ends of its logs (GetReplicaLogInfo)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import GetReplicaLogInfoRequest, ReplicaLogInfo, ReplicaLogQuery
from quorumlog_broker.api.handlers.replica_log_info import MAX_PARTITIONS, handle_get_replica_log_info

E = ErrorCode


def told(cluster: ReplicaCluster, node: int, *, epoch: int, index: int = 0, topic: bytes = TOPIC_ID) -> ReplicaLogInfo:
    query = ReplicaLogQuery(topic_id=topic, index=index, leader_epoch=epoch)
    request = GetReplicaLogInfoRequest(broker_id=node, partitions=(query,))
    (info,) = cluster.nodes[node].data_plane.log_ends.describe(request).partitions
    assert (info.topic_id, info.index) == (topic, index)
    return info


def test_every_replica_tells_the_end_of_its_log_and_the_epoch_of_its_last_batch() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.run_for(1_000)
    epoch = cluster.core(1).leader_epoch
    empty = told(cluster, 2, epoch=epoch)
    assert (empty.error_code, empty.last_written_leader_epoch, empty.log_end_offset) == (E.NONE, -1, 0)
    cluster.produce(1, "a", "b")
    cluster.run_for(1_000)
    for node in (1, 2, 3):
        info = told(cluster, node, epoch=epoch)
        assert (info.error_code, info.last_written_leader_epoch, info.log_end_offset) == (E.NONE, epoch, 2)


def test_what_cannot_be_told_has_an_error() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.run_for(1_000)
    epoch = cluster.core(1).leader_epoch
    assert told(cluster, 2, epoch=epoch + 1).error_code == E.UNKNOWN_LEADER_EPOCH, "it still follows an older leader"
    assert told(cluster, 2, epoch=epoch - 1).error_code == E.FENCED_LEADER_EPOCH
    assert told(cluster, 2, epoch=epoch, index=9).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert told(cluster, 2, epoch=epoch, topic=b"x" * 16).error_code == E.UNKNOWN_TOPIC_ID
    cluster.core(2).failed = True
    assert told(cluster, 2, epoch=epoch).error_code == E.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize(
    ("internal", "broker_id", "count", "code"),
    [
        (False, 1, 1, E.CLUSTER_AUTHORIZATION_FAILED),
        (True, 2, 1, E.INVALID_REQUEST),
        (True, 1, MAX_PARTITIONS + 1, E.INVALID_REQUEST),
    ],
    ids=["a client", "another broker", "too many"],
)
def test_refused(internal: bool, broker_id: int, count: int, code: ErrorCode) -> None:
    context: Any = SimpleNamespace(listener=SimpleNamespace(internal=internal))
    services: Any = SimpleNamespace(node_id=1)
    query = ReplicaLogQuery(topic_id=TOPIC_ID, index=0, leader_epoch=0)
    request = GetReplicaLogInfoRequest(broker_id=broker_id, partitions=(query,) * count)
    with pytest.raises(ApiError) as raised:
        asyncio.run(handle_get_replica_log_info(services, context, request))
    assert raised.value.code is code
