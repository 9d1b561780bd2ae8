"""Whether a replica may be read and written: its core and its directory's generation together."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.partition.events import LogFailed
from quorumlog_broker.replicas.replica import Replica


def led_replica() -> Replica:
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,))
    cluster.wait_led(1)
    cluster.produce(1, "a")
    return cluster.nodes[1].replicas[TOPIC_ID, 0]


def assert_refused(replica: Replica) -> None:
    assert not replica.is_usable
    with pytest.raises(ApiError) as led:
        replica.leading()
    assert led.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_replica_is_refused_as_soon_as_its_directory_is_not_usable() -> None:
    """Its core has not heard yet: reading once asked the core alone, and served from memory."""
    replica = led_replica()
    assert replica.is_usable and replica.queue is not None and not replica.core.failed
    life = replica.queue.directory.life
    life.fail(OSError("EIO"), life.generation)
    assert_refused(replica)


def test_a_replica_whose_log_failed_is_refused_in_a_directory_that_is_online() -> None:
    replica = led_replica()
    replica.core.step(LogFailed(), 0)
    assert replica.can_be_opened
    assert_refused(replica)
