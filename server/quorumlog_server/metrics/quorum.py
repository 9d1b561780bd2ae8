"""The quorum, the metadata as this node has applied them, and their snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorumlog.histogram import Histogram
from quorumlog_quorum.metadata.deleted_topics import MAX_DELETED_TOPICS
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Rest, Series

if TYPE_CHECKING:
    from quorumlog_quorum.node.driver import Driver

_RAFT = "kafka.server:type=raft-metrics: "
_LOADER = "kafka.server:type=broker-metadata-metrics: "


def _gauge(name: str, asks: str, mbean: str = "", unit: str = "") -> Series:
    return Series(name, Kind.GAUGE, unit, (), asks, mbean)


APPLIED_OFFSET = _gauge(
    "metadata_applied_offset",
    "How far has this node applied the metadata? Exclusive.",
    f"{_LOADER}last-applied-record-offset",
)
TOPICS = _gauge(
    "metadata_topics", "How many topics are there?", "kafka.controller:type=KafkaController,name=GlobalTopicCount"
)
BROKERS = _gauge("metadata_brokers", "How many brokers are registered?")
DELETED = _gauge("metadata_deleted_topics", "Of how many deleted topics may a broker still hold files?")
DELETED_FULL = _gauge(
    "metadata_deleted_topics_full",
    "Is no further one remembered? A broker that is away then sets its files aside, and deletes none.",
)
EPOCH = _gauge("raft_epoch", "Which epoch of the quorum does this node know?", f"{_RAFT}current-epoch")
HIGH_WATERMARK = _gauge(
    "raft_high_watermark", "Where does the quorum's committed log end? Exclusive.", f"{_RAFT}high-watermark"
)
START_OFFSET = _gauge("raft_start_offset", "Where does this node's metadata log begin?")
END_OFFSET = _gauge("raft_end_offset", "Where does this node's metadata log end? Exclusive.", f"{_RAFT}log-end-offset")
LEADER_ID = _gauge(
    "raft_leader_id",
    "Which node leads the quorum, as far as this one knows? -1: it knows none.",
    f"{_RAFT}current-leader",
)
VOTERS = _gauge("raft_voters", "How many voters has the quorum?", f"{_RAFT}number-of-voters")
COMMITS = Series(
    "raft_commit_seconds",
    Kind.HISTOGRAM,
    "seconds",
    (),
    "How long do records of the metadata wait for a majority, while this node leads?",
    f"{_RAFT}commit-latency-avg, commit-latency-max",
    buckets="call",
)
ELECTIONS = Series(
    "raft_elections_total",
    Kind.COUNTER,
    "",
    (),
    "How many leaders of the quorum has this node seen elected?",
    f"{_RAFT}election-latency-avg times them",
)
FOLLOWER_LAG = Series(
    "raft_follower_lag",
    Kind.GAUGE,
    "",
    ("node",),
    "How many records of the metadata has a node not fetched? Only the leader knows.",
    rest=Rest.LARGEST,
)
APPLY_LAG = _gauge(
    "metadata_apply_lag_seconds",
    "How old is what this node has applied last? 0 where it has applied all that it knows of, and knows a leader.",
    f"{_LOADER}last-applied-record-lag-ms",
    "seconds",
)
SNAPSHOTS = _gauge("snapshots", "How many snapshots of the metadata does this node have?")
SNAPSHOTS_DAMAGED = _gauge("snapshots_damaged", "How many of them were found damaged, and are kept aside?")
SNAPSHOT_END_OFFSET = _gauge("snapshot_end_offset", "Where does the latest one end? Exclusive.")
SNAPSHOT_BYTES = _gauge(
    "snapshot_bytes",
    "How large is the latest one?",
    "kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedBytes",
    "bytes",
)
SNAPSHOT_AGE = _gauge(
    "snapshot_age_seconds",
    "How old is the last record in the latest one?",
    "kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedAgeMs",
    "seconds",
)

SERIES: Final = (
    APPLIED_OFFSET, TOPICS, BROKERS, DELETED, DELETED_FULL, EPOCH, HIGH_WATERMARK, START_OFFSET, END_OFFSET,
    LEADER_ID, VOTERS, COMMITS, ELECTIONS, FOLLOWER_LAG, APPLY_LAG,
    SNAPSHOTS, SNAPSHOTS_DAMAGED, SNAPSHOT_END_OFFSET, SNAPSHOT_BYTES, SNAPSHOT_AGE,
)  # fmt: skip


def collect(source: Source, out: Reading) -> None:
    image = source.node.loader.image
    out.add(APPLIED_OFFSET, image.offset)
    out.add(TOPICS, len(image.topics))
    out.add(BROKERS, len(image.brokers))
    out.add(DELETED, len(image.deleted))
    out.add(DELETED_FULL, len(image.deleted) >= MAX_DELETED_TOPICS)
    driver = source.node.driver
    if driver is not None:
        out.add(EPOCH, driver.announcements.epoch)
        out.add(HIGH_WATERMARK, driver.high_watermark)
        out.add(START_OFFSET, driver.core.log.start if driver.core is not None else 0)
        out.add(END_OFFSET, driver.end_offset)
        _collect_raft(driver, out)
        out.add(APPLY_LAG, _apply_lag_ms(source, driver) / 1000)
        _collect_snapshots(source, out)


def _collect_raft(driver: Driver, out: Reading) -> None:
    told = driver.announcements
    out.add(LEADER_ID, -1 if told.leader_id is None else told.leader_id)
    out.add(VOTERS, len(driver.voter_ids))
    out.add(ELECTIONS, told.elections)
    out.add_histogram(COMMITS, driver.commit_times or Histogram("call"))
    for node, lag in driver.follower_lags().items():
        out.add(FOLLOWER_LAG, lag, node)


def _apply_lag_ms(source: Source, driver: Driver) -> int:
    """While a node knows no leader, it cannot know what it lacks. So the last record that it has tells its age."""
    loader, told = source.node.loader, driver.announcements
    if told.leader_id is not None and loader.image.offset >= max(loader.high_watermark, 1):
        return 0
    last_ms = loader.last_timestamp_ms
    return max(0, source.wall_ms - last_ms) if last_ms >= 0 else 0


def _collect_snapshots(source: Source, out: Reading) -> None:
    """None of them before the node has opened its log."""
    store = None if source.node.driver is None else source.node.driver.snapshots
    if store is None:
        return
    out.add(SNAPSHOTS, len(store.stored))
    out.add(SNAPSHOTS_DAMAGED, store.damaged)
    latest = store.latest
    if latest is not None:
        out.add(SNAPSHOT_END_OFFSET, latest.id.offset)
        out.add(SNAPSHOT_BYTES, latest.size)
        out.add(SNAPSHOT_AGE, max(0, source.wall_ms - latest.last_contained_timestamp_ms) / 1000)
