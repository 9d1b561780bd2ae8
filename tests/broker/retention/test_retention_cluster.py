"""Retention on three simulated brokers: by time and by size, on leader and followers, live after a config change."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from replica_cluster import RETENTION_CHECK_MS, TOPIC_ID, ReplicaCluster

from jepsen.sim.time.clock import WALL_START_MS
from quorumlog.configs.topic import RETENTION_PAUSED
from quorumlog.errors import ErrorCode
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.records import Record, encode_batch
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from tests.rules import rule

SMALL = {"internal_segment_bytes": "300", "file_delete_delay_ms": "500"}


def led(**config: str) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(**{**SMALL, **config})
    cluster.wait_led(1)
    return cluster


def batch(value: str, *, timestamp_ms: int) -> bytes:
    return encode_batch([Record(0, timestamp_ms, b"k", value.encode(), ())])


def fill(cluster: ReplicaCluster, count: int, ms: int | None = None) -> None:
    """Records of now, or of `ms`."""
    for number in range(count):
        now = cluster.nodes[1].clock.wall_ms() if ms is None else ms
        cluster.produce_batch(1, batch(f"v{number}" + "." * 50, timestamp_ms=now))


def starts(cluster: ReplicaCluster) -> list[int]:
    return [node.log().start_offset for node in cluster.nodes.values()]


def files(cluster: ReplicaCluster, node_id: int, suffix: str) -> list[str]:
    return [name for name in cluster.nodes[node_id].disk.list("/d0/t-0") if name.endswith(suffix)]


def set_config(cluster: ReplicaCluster, name: str, value: str) -> None:
    cluster.commit(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=name, value=value))


def hold(cluster: ReplicaCluster, value: str | None) -> None:
    """As a restore leaves it, and as `restore release` ends it (None)."""
    one = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER_DEFAULT, name=RETENTION_PAUSED, value=value)
    cluster.commit(one)


def test_expired_records_go_on_every_replica_and_consumers_are_told() -> None:
    cluster = led(retention_ms="5000")
    fill(cluster, 10)
    assert starts(cluster) == [0, 0, 0]
    cluster.run_for(5_000 + 3 * RETENTION_CHECK_MS)
    assert starts(cluster) == [10, 10, 10]
    assert [cluster.core(node).log_start for node in cluster.nodes] == [10, 10, 10]
    answer = cluster.fetch(1, 3)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    fill(cluster, 1)
    assert cluster.fetch(1, 10).log_start_offset == 10
    cluster.run_for(1_000)
    assert [files(cluster, node, ".deleted") for node in cluster.nodes] == [[], [], []], "not freed after its delay"


@pytest.mark.parametrize("settings", [{"retention_ms": "1"}, {"retention_bytes": "300"}])
def test_a_restored_cluster_keeps_all_until_the_hold_is_released(settings: dict[str, str]) -> None:
    """Whatever a topic says of its retention."""
    cluster = led(**settings)
    hold(cluster, "true")
    fill(cluster, 10)
    cluster.run_for(5 * RETENTION_CHECK_MS)
    assert starts(cluster) == [0, 0, 0]
    hold(cluster, None)
    cluster.run_for(5 * RETENTION_CHECK_MS)
    assert min(starts(cluster)) > 0


def test_what_is_not_expired_stays() -> None:
    cluster = led(retention_ms="60000")
    fill(cluster, 10)
    cluster.run_for(10 * RETENTION_CHECK_MS)
    assert starts(cluster) == [0, 0, 0]
    fill(cluster, 10, WALL_START_MS - 70_000)  # the older ones behind newer ones
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert starts(cluster) == [0, 0, 0]


@rule("storage 8.2")
def test_a_size_keeps_at_least_that_much() -> None:
    cluster = led(retention_bytes="1000")
    fill(cluster, 20)
    cluster.run_for(3 * RETENTION_CHECK_MS)
    log = cluster.nodes[1].log()
    assert 1_000 <= log.size_bytes < 1_300 and 0 < log.start_offset == log.segment_bases[0]
    assert len(set(starts(cluster))) == 1


@rule("storage 8.6")
def test_settings_take_effect_while_brokers_run() -> None:
    cluster = led()
    fill(cluster, 10)
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert starts(cluster) == [0, 0, 0]
    set_config(cluster, "retention.ms", "1")
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert starts(cluster) == [10, 10, 10]


@rule("storage 9.17", "log 8.3")
@pytest.mark.parametrize(("policy", "goes"), [("compact", False), ("compact,delete", True)])
def test_only_a_policy_with_delete_deletes(policy: str, goes: bool) -> None:
    cluster = led(retention_ms="1", cleanup_policy=policy)
    fill(cluster, 10)
    cluster.run_for(5 * RETENTION_CHECK_MS)
    assert starts(cluster) == ([10] * 3 if goes else [0] * 3)


@rule("storage 8.2", "log 3.13")
def test_nothing_above_the_high_watermark_goes() -> None:
    """A follower is away, and the ISR is below its minimum: the mark stands still while the leader writes."""
    cluster = led(retention_ms="1", min_insync_replicas="3")
    fill(cluster, 4)
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert starts(cluster) == [4, 4, 4]
    cluster.kill(3)
    for number in range(8):
        cluster.produce_batch(1, batch(f"w{number}" + "." * 50, timestamp_ms=WALL_START_MS), acks=1)
    cluster.run_for(5 * RETENTION_CHECK_MS)
    assert cluster.core(1).high_watermark == 4 and cluster.nodes[1].log().end_offset == 12
    assert cluster.nodes[1].log().start_offset == 4
    assert len(cluster.nodes[1].log_values()) == 8


@rule("storage 6.5")
def test_a_follower_that_was_away_begins_at_the_leaders_start() -> None:
    cluster = led(retention_ms="5000")
    fill(cluster, 10)
    cluster.kill(3)
    cluster.run_for(10_000)
    assert cluster.nodes[1].log().start_offset == 10
    fill(cluster, 3)
    cluster.start(3)
    cluster.run_for(2_000)
    assert cluster.nodes[3].log().start_offset == 10 and cluster.nodes[3].log().end_offset == 13


@rule("storage 3.15")
@pytest.mark.parametrize("power_cut", [False, True])
def test_a_restart_keeps_the_start_and_frees_what_was_left(power_cut: bool) -> None:
    cluster = led(retention_ms="5000", file_delete_delay_ms="600000")
    fill(cluster, 10)
    cluster.run_for(5_000 + 3 * RETENTION_CHECK_MS)
    assert files(cluster, 3, ".log.deleted") != []
    if power_cut:
        cluster.nodes[3].cut_power()
    else:
        cluster.kill(3)
    cluster.start(3)
    cluster.run_for(2_000)
    assert cluster.nodes[3].log().start_offset == 10
    assert power_cut or files(cluster, 3, ".deleted") == [], "a power cut may undo the names, and the delay begins anew"


@rule("storage 8.4")
def test_one_write_of_the_starts_for_all_partitions_of_a_pass() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=12, retention_ms="5000", **SMALL)
    for index in range(12):
        cluster.wait_led(1, index)
        for _ in range(8):
            cluster.produce_batch(1, batch("v" * 60, timestamp_ms=WALL_START_MS), index=index)
    written: list[str] = []
    cluster.nodes[1].disk.trace = lambda kind, path, _: written.append(path) if kind == "rename" else None
    cluster.run_for(6_000)
    done = [cluster.nodes[1].log(index=index).start_offset for index in range(12)]
    assert done == [8] * 12
    retired = [number for number, path in enumerate(written) if path.endswith(".log")]
    notes = [number for number, path in enumerate(written) if "log-start-offset" in path]
    assert len([number for number in notes if retired[0] - 5 < number < retired[-1]]) <= 2
    assert min(notes) < retired[0], "renamed before it was noted"


def test_a_pass_leaves_appends_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition with many expired segments is done in several jobs of the writer."""
    cluster = led(retention_ms="5000")
    fill(cluster, 120)
    renamed: list[int] = []
    count = 0

    def seen(kind: str, path: str, _: bytes) -> None:
        nonlocal count
        count += kind == "rename" and path.endswith(".log")

    cluster.nodes[1].disk.trace = seen
    original = DirectoryQueue.run

    def watched(self: DirectoryQueue, work: Any, lane: Lane = Lane.WRITER, **rest: Any) -> asyncio.Future[Any]:
        if lane is Lane.BACKGROUND:
            renamed.append(count)
        return original(self, work, lane, **rest)

    monkeypatch.setattr(DirectoryQueue, "run", watched)
    cluster.run_for(8_000)
    assert count >= 35
    renamed.append(count)
    assert max(after - before for before, after in itertools.pairwise(renamed)) <= 3 * 17


def test_a_wall_clock_that_jumps_ahead_for_a_moment_deletes_nothing() -> None:
    cluster = led(retention_ms="3600000")
    fill(cluster, 10)
    cluster.run_for(2 * RETENTION_CHECK_MS)
    for node in cluster.nodes.values():
        node.clock.wall_skew_ms = 10 * 365 * 86_400_000
    cluster.run_for(RETENTION_CHECK_MS // 2)
    for node in cluster.nodes.values():
        node.clock.wall_skew_ms = 0
    cluster.run_for(5 * RETENTION_CHECK_MS)
    assert starts(cluster) == [0, 0, 0]


def test_a_deleted_topic_ends_its_retention() -> None:
    cluster = led(retention_ms="1000")
    fill(cluster, 10)
    cluster.delete_topic()
    cluster.run_for(5 * RETENTION_CHECK_MS)
    assert all(TOPIC_ID not in [key[0] for key in node.replicas] for node in cluster.nodes.values())
    assert not any(node.crashes for node in cluster.nodes.values())


def test_a_record_dated_ahead_is_told_as_what_keeps_the_log() -> None:
    cluster = led(retention_ms="5000", message_timestamp_after_max_ms=str(2**62))
    year_ms = 365 * 86_400_000
    fill(cluster, 1, WALL_START_MS + 10 * year_ms)
    fill(cluster, 10)
    cluster.run_for(20_000)
    assert starts(cluster) == [0, 0, 0]
    for node in cluster.nodes.values():
        (blocked,) = node.data_plane.blocked_retention.values()
        end = node.log().segment_bases[1]
        assert (blocked.base_offset, blocked.end_offset) == (0, end)
        assert blocked.until_ms == WALL_START_MS + 10 * year_ms + 5_000
        text = blocked.describe("t-0")
        assert "retention.ms goes by it" in text and f"quorumlog topic truncate t -p 0 --before {end}" in text
    set_config(cluster, "retention.ms", "-1")
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert [node.data_plane.blocked_retention for node in cluster.nodes.values()] == [{}, {}, {}]
    set_config(cluster, "retention.ms", "5000")
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert all(node.data_plane.blocked_retention for node in cluster.nodes.values())
    set_config(cluster, "retention.bytes", "0")
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert starts(cluster) == [11, 11, 11]
    assert [node.data_plane.blocked_retention for node in cluster.nodes.values()] == [{}, {}, {}]


def test_records_without_a_timestamp_are_told_as_what_keeps_the_log() -> None:
    """Nothing says how old they are, so `retention.ms` lets none of them go. One that has a time ends that."""
    cluster = led(retention_ms="5000")
    fill(cluster, 4)
    fill(cluster, 8, -1)
    cluster.run_for(60_000)
    (start,) = set(starts(cluster))
    assert start == 4
    for node in cluster.nodes.values():
        (blocked,) = node.data_plane.blocked_retention.values()
        assert (blocked.base_offset, blocked.end_offset) == (4, 12)
        text = blocked.describe("t-0")
        assert "keeps all records from offset 4 on for ever: none of them has a timestamp" in text
        assert "quorumlog topic truncate t -p 0 --before 12" in text and "message.timestamp.type=LogAppendTime" in text
    fill(cluster, 1)
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert [node.data_plane.blocked_retention for node in cluster.nodes.values()] == [{}, {}, {}]
    cluster.run_for(10_000)
    assert starts(cluster) == [13, 13, 13]


def test_a_record_dated_ahead_keeps_those_without_a_timestamp_before_it() -> None:
    cluster = led(retention_ms="5000", message_timestamp_after_max_ms=str(2**62))
    fill(cluster, 5, -1)
    fill(cluster, 1, WALL_START_MS + 86_400_000)
    fill(cluster, 5)
    cluster.run_for(20_000)
    assert starts(cluster) == [0, 0, 0]
    (blocked,) = cluster.nodes[1].data_plane.blocked_retention.values()
    assert blocked.timestamp == WALL_START_MS + 86_400_000 and blocked.base_offset == 0
    assert 6 <= blocked.end_offset < 11, "behind the record, and not at the end"


@pytest.mark.parametrize("policy", [{"retention_ms": "-1"}, {"cleanup_policy": "compact", "retention_ms": "5000"}])
def test_records_without_a_timestamp_that_need_not_go_are_not_told(policy: dict[str, str]) -> None:
    cluster = led(**policy)
    fill(cluster, 3, -1)
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert not cluster.nodes[1].data_plane.blocked_retention


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000])
def test_what_is_allowed_to_be_ahead_is_no_fault(ahead_ms: int) -> None:
    cluster = led(retention_ms="5000")
    fill(cluster, 3, WALL_START_MS + ahead_ms)
    cluster.run_for(3 * RETENTION_CHECK_MS)
    assert not cluster.nodes[1].data_plane.blocked_retention
