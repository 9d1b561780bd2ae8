"""Settings that change while logs are open: which layer wins, and that logs and partition cores get them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.topic_settings import TopicSettings
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, EMPTY, TOPIC_RESOURCE
from quorumlog_quorum.metadata.registration import BrokerRegistration
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

REGISTERED = BrokerRegistration(
    broker_id=1,
    incarnation_id=bytes(16),
    broker_epoch=1,
    endpoints=(),
    rack=None,
    fenced=True,
    in_controlled_shutdown=False,
    log_directories=(),
)


def change(cluster: ReplicaCluster, kind: int, resource: str, name: str, value: str | None) -> None:
    cluster.commit(ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value))
    cluster.run_for(100)


def segment_bytes(cluster: ReplicaCluster) -> list[int]:
    """The setting of each node's open log."""
    logs = [node.replicas[TOPIC_ID, 0].log for node in cluster.nodes.values()]
    return [log.config.segment_bytes for log in logs if log is not None]


def test_the_topic_wins_over_its_broker_and_that_over_all_brokers() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.run_for(500)
    default = 1 << 30
    assert segment_bytes(cluster) == [default] * 3
    change(cluster, BROKER_RESOURCE, "", "segment.bytes", "3000000")
    assert segment_bytes(cluster) == [3_000_000] * 3
    change(cluster, BROKER_RESOURCE, "2", "segment.bytes", "2000000")
    assert segment_bytes(cluster) == [3_000_000, 2_000_000, 3_000_000]
    change(cluster, TOPIC_RESOURCE, "t", "segment.bytes", "1500000")
    assert segment_bytes(cluster) == [1_500_000] * 3
    change(cluster, TOPIC_RESOURCE, "t", "segment.bytes", None)
    assert segment_bytes(cluster) == [3_000_000, 2_000_000, 3_000_000]


@rule("kraft 9.31")
def test_what_the_controller_decides_by_is_not_of_one_broker() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    change(cluster, BROKER_RESOURCE, "1", "durability", "replicated")
    assert cluster.nodes[1].replicas[TOPIC_ID, 0].core.durable
    change(cluster, BROKER_RESOURCE, "", "durability", "replicated")
    assert not any(node.replicas[TOPIC_ID, 0].core.durable for node in cluster.nodes.values())


@rule("kraft 9.31")
def test_a_file_has_no_effect_on_what_the_controller_decides_by(caplog: pytest.LogCaptureFixture) -> None:
    file = {"durability": "replicated", "min.insync.replicas": "2", "retention.ms": "5"}
    registry = Registry()
    settings = TopicSettings(1, registry, lambda *_: None, lambda _: None, file)
    found = settings.of("t")
    assert (found.durability, found.min_insync_replicas, found.retention_ms) == ("synced", 1, 5)
    settings.tell_ignored()
    assert caplog.records == [], "the first controller may yet write what the file says"
    registry.image = replace(EMPTY, brokers=EMPTY.brokers.set(1, REGISTERED))
    settings.tell_ignored()
    settings.tell_ignored()
    assert [record.args for record in caplog.records] == [
        (1, "log.durability", "replicated", "synced"),
        (1, "min.insync.replicas", "2", "1"),
    ]


def test_partitions_and_logs_get_the_durability_setting() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    change(cluster, TOPIC_RESOURCE, "t", "durability", "replicated")
    change(cluster, TOPIC_RESOURCE, "t", "min.insync.replicas", "2")
    replica = cluster.nodes[1].replicas[TOPIC_ID, 0]
    assert (replica.core.durable, replica.core.min_isr) == (False, 2)
    assert replica.log is not None and not replica.log.config.durable


def test_a_log_that_was_loaded_with_older_settings_has_the_newer_ones_once_it_is_ready() -> None:
    """Else its leader acknowledges what it has only written, although `durability` is `synced`."""
    cluster = ReplicaCluster()
    cluster.create_topic(durability="replicated")
    cluster.wait_led(1)
    cluster.produce(1, "a")
    cluster.kill(2)
    node = cluster.start(2)
    cluster.run_until(lambda: (TOPIC_ID, 0) in node.replicas)
    replica = node.replicas[TOPIC_ID, 0]
    assert replica.partition_log is None and not replica.config.synced, "its log is being loaded"
    change(cluster, TOPIC_RESOURCE, "t", "durability", "synced")
    cluster.run_until(lambda: replica.log is not None)
    assert replica.core.durable and replica.log is not None and replica.log.config.durable


def test_followers_fetch_at_once_an_append_that_is_written_with_a_change() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic(durability="replicated")
    cluster.wait_led(1)
    cluster.run_for(100)
    cluster.commit(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="segment.bytes", value="2000000"))
    begun_ns = cluster.scheduler.now_ns
    cluster.produce(1, "a")
    assert cluster.scheduler.now_ns - begun_ns < 10 * NS_PER_MS


TOLD = [
    ("segment.bytes", "1500000"),
    ("segment.ms", "1500000"),
    ("segment.jitter.ms", "5"),
    ("segment.index.bytes", "1500000"),
    ("index.interval.bytes", "100"),
    ("durability", "replicated"),
    ("flush.messages", "7"),
    ("flush.ms", "8"),
]


@rule("log 8.9")
def test_a_log_is_told_of_settings_that_it_uses_and_of_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[LogConfig] = []
    monkeypatch.setattr(PartitionLog, "configure", lambda _log, config: told.append(config))
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    change(cluster, TOPIC_RESOURCE, "t", "retention.ms", "5000")
    change(cluster, TOPIC_RESOURCE, "t", "min.insync.replicas", "2")
    assert told == []
    assert [node.replicas[TOPIC_ID, 0].core.min_isr for node in cluster.nodes.values()] == [2] * 3
    assert [node.replicas[TOPIC_ID, 0].config.retention_ms for node in cluster.nodes.values()] == [5000] * 3
    for name, value in TOLD:
        told.clear()
        change(cluster, TOPIC_RESOURCE, "t", name, value)
        assert len(told) == 3, f"{name} was told to {len(told)} logs"
