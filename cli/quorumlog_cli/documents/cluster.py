"""What `config`, `quorum`, `metadata`, `backup`, `restore`, `top` and `bench` print."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from quorumlog_cli.documents.schema import Opaque, has_more


class Config(TypedDict):
    key: str
    value: Annotated[str | None, "null: not told, because it is a secret"]
    source: str
    read_only: bool


class ConfigChanged(TypedDict):
    entity_type: str
    name: str
    changes: dict[str, str | None]


class QuorumNode(TypedDict):
    """log_end: exclusive; null: not known."""

    node_id: int
    role: str
    log_end: int | None
    lag: Annotated[int | None, "records"]
    since_fetch_ms: int
    since_caught_up_ms: int


class QuorumStatus(TypedDict):
    cluster_id: str
    leader: Annotated[int, "-1: none"]
    epoch: int
    high_watermark: int
    state_hash: str
    healthy: bool
    nodes: list[QuorumNode]
    hints: list[str]


class LeaderNow(TypedDict):
    leader: int
    epoch: int


class HistoryEvent(TypedDict):
    offset: int
    timestamp: Annotated[int, "milliseconds since 1970"]
    epoch: int
    event: str
    voters: list[int]
    leader: NotRequired[int]
    granted_by: NotRequired[list[int]]


class History(TypedDict):
    events: list[HistoryEvent]


class BrokerHash(TypedDict):
    node_id: int
    newest: int
    state_hash: str


class Verified(TypedDict):
    agree: bool
    offset: Annotated[int, "the first one at which they differ, or the last one that was compared"]
    compared: int
    brokers: list[BrokerHash]


class Voter(TypedDict):
    node_id: int
    directory_id: str


class Voters(TypedDict):
    voters: list[Voter]


class ReplicaRow(TypedDict):
    node_id: int
    directory_id: str | None
    status: str
    log_end: int | None
    lag: int | None
    since_fetch_ms: int
    since_caught_up_ms: int


class VoterChange(TypedDict):
    kind: str
    node_id: int
    directory_id: str | None
    phase: str
    log_end: int | None
    leader_end: int


class Replication(TypedDict):
    leader: int
    epoch: int
    kraft_version: int
    replicas: list[ReplicaRow]
    change: Annotated[VoterChange | None, "of the voters, that is not done yet"]


@has_more("the fields of the metadata record of this type")
class MetadataRecord(TypedDict):
    offset: int
    epoch: int
    timestamp: Annotated[int, "milliseconds since 1970"]
    type: str


Image = Annotated[Any, Opaque("the fields of the image's own record, as metadata dump shows records")]


class ImagePartitions(TypedDict):
    name: str
    topic_id: str
    partitions: list[Image]


class ImageConfigs(TypedDict):
    resource_type: int
    resource_name: str
    values: dict[str, str]


class MetadataImage(TypedDict):
    """With --image."""

    offset: int
    epoch: int
    state_hash: str
    brokers: list[Image]
    topics: list[ImagePartitions]
    configs: list[ImageConfigs]
    features: dict[str, int]
    controllers: list[Image]
    next_producer_id: int
    cluster_incarnation: str
    access: list[Image]
    deleted_topics: list[Image]


class Snapshot(TypedDict):
    path: str
    end_offset: int
    epoch: int
    size: Annotated[int, "bytes"]
    records: int
    last_contained_timestamp_ms: int
    age_ms: int | None
    problem: str | None


class Snapshots(TypedDict):
    snapshots: list[Snapshot]


class OpenTransaction(TypedDict):
    transactional_id: str
    producer_id: int
    partitions: str


class BackedUpTopic(TypedDict):
    topic: str
    partitions: int
    bytes: int


class Backup(TypedDict):
    """left_out: topics that were deleted meanwhile, and why."""

    cluster_id: str
    metadata_offset: int
    began_ms: int
    cut_ms: int
    ended_ms: int
    commits_held_ms: int
    made_by: str
    topics: list[BackedUpTopic]
    open_transactions: list[OpenTransaction]
    left_out: dict[str, str]


class BackupVerified(TypedDict):
    whole: bool
    partitions: int
    bytes: int


class Restored(TypedDict):
    cluster_id: str
    restored_from: str
    began_ms: int
    aborted_transactions: list[OpenTransaction]


class Released(TypedDict):
    released: bool


class TopMember(TypedDict):
    node_id: int
    voter: bool
    end_offset: int | None
    lag: int | None
    since_fetch_ms: int | None


class TopQuorum(TypedDict):
    leader: int | None
    epoch: int
    high_watermark: int
    members: list[TopMember]


class TopDirectory(TypedDict):
    path: str
    replicas: int
    size_bytes: int
    total_bytes: int | None
    usable_bytes: int | None
    error: str | None


class TopBroker(TypedDict):
    node_id: int
    state: str
    address: str
    rack: str | None
    directories: list[TopDirectory]


class TopTopic(TypedDict):
    topic: str
    topic_id: str | None
    partitions: int
    offline: int
    under_replicated: int
    records_per_s: float | None
    bytes_per_s: float | None
    size_bytes: int | None


class TopGroup(TypedDict):
    """lag: null where it could not be read."""

    group: str
    state: str
    members: int
    lag: int | None
    counted_in: str | None
    is_estimate: bool
    distance: int | None
    behind_ms: int | None
    growth_per_s: float | None
    not_read: str | None


class TopEvent(TypedDict):
    at_ms: int
    kind: str
    subject: str
    text: str
    node_id: int | None
    offset: int | None


class Top(TypedDict):
    at_ms: int
    cluster_id: str | None
    problems: list[str]
    not_read: Annotated[dict[str, str], "why, by part"]
    quorum: TopQuorum | None
    brokers: list[TopBroker]
    topics: list[TopTopic]
    groups: list[TopGroup]
    events: list[TopEvent]


Latencies = TypedDict(
    "Latencies", {"avg": float, "max": float, "p50": float, "p95": float, "p99": float, "p99.9": float}
)


@has_more("options of the client that were given with -X or by the profile, without secrets")
class BenchSettings(TypedDict):
    records: int
    clients: NotRequired[int]
    record_size: NotRequired[int]
    throughput: NotRequired[float | None]


class Bench(TypedDict):
    """corrected_ms: for coordinated omission, if a throughput was asked for."""

    format: int
    kind: str
    at: str
    settings: BenchSettings
    records: int
    failed: int
    bytes: int
    seconds: float
    records_per_s: float
    mib_per_s: float
    latency_ms: NotRequired[Latencies]
    corrected_ms: NotRequired[Latencies]
    saved: str


class Change(TypedDict):
    name: str
    a: float
    b: float
    percent: float | None


class Compared(TypedDict):
    kind: str
    a: str
    b: str
    differing: Annotated[list[str], "settings"]
    changes: list[Change]
