"""Administration of everything but topics: partition counts, settings, deleted records, and state.

Field by field these are Kafka's messages under our names. The active controller answers requests that change the
cluster's metadata; brokers forward them to it.

Written by `./dev proto` from proto/quorumlog/v1/admin.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.common import FeatureRange
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequest:
    """takes_throttling: The client understands THROTTLING_QUOTA_EXCEEDED (KIP-599; version 3)."""

    topics: tuple[PartitionsOfTopic, ...] = ()
    timeout_ms: int
    validate_only: bool = False
    takes_throttling: bool = True


@message(frozen=True, slots=True, kw_only=True)
class PartitionsOfTopic:
    """count: Total number of partitions, including the existing ones.
    assignments: Replicas of each new partition, in the order of partition numbers; empty: the controller places
    them.
    """

    name: str
    count: int
    assignments: tuple[NewPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class NewPartition:
    """The first broker is the preferred leader."""

    broker_ids: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class CreatePartitionsResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[CreatePartitionsResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class CreatePartitionsResult:
    name: str
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsRequest:
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AlterConfigsResource:
    """resource_type: 2: topic; 4: broker, with the empty name for the default of all brokers (Kafka's numbers).
    replace: True: Kafka's older AlterConfigs, which removes every setting that is not named here.
    """

    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...] = ()
    replace: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AlterableConfig:
    """operation: 0: set; 1: delete (back to the default); 2: append to and 3: subtract from a list of
    comma-separated words.
    """

    name: str
    operation: int = 0
    value: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[AlterConfigsResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AlterConfigsResult:
    resource_type: int
    resource_name: str
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequest:
    """topics: Empty: every topic.
    response_partition_limit: Largest number of partitions in one answer.
    cursor: Where to continue: the `next_cursor` of an earlier answer.
    """

    topics: tuple[str, ...] = ()
    response_partition_limit: int = 2000
    cursor: PartitionCursor | None = None


@message(frozen=True, slots=True, kw_only=True)
class PartitionCursor:
    """The first partition that is not described yet. Topics are described in the order of their names."""

    topic_name: str
    partition_index: int


@message(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponse:
    """next_cursor: Set if the answer is incomplete."""

    error_code: int = 0
    error_message: str = ""
    topics: tuple[TopicPartitionsDescription, ...] = ()
    next_cursor: PartitionCursor | None = None
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class TopicPartitionsDescription:
    """authorized_operations: Bits of Kafka's operations; the smallest int32: not requested."""

    error_code: int = 0
    name: str
    topic_id: bytes = b""
    is_internal: bool = False
    partitions: tuple[PartitionDescription, ...] = ()
    authorized_operations: int = -2147483648


@message(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """leader_id: -1: no leader.
    leader_recovery_state: 1: its leader was elected uncleanly and still recovers, so acknowledged records may be
    lost. 0: otherwise.
    """

    error_code: int = 0
    index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequest:
    """timeout_ms: How long the leader may wait for the replicas."""

    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: int = 60000


@message(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopic:
    name: str
    partitions: tuple[DeleteRecordsPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartition:
    """offset: Records below this offset are deleted; -1: all below the high watermark."""

    index: int
    offset: int


@message(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopicResult:
    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartitionResult:
    """low_watermark: The smallest log start offset of all replicas that are alive or may lead without loss; -1 with
    an error.
    """

    index: int
    error_code: int = 0
    low_watermark: int = -1


@message(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest:
    """all_topics: True: every partition of the broker; `topics` is ignored."""

    all_topics: bool = True
    topics: tuple[LogDirsTopic, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class LogDirsTopic:
    name: str
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    error_code: int = 0
    error_message: str = ""
    directories: tuple[LogDirDescription, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    """error_code: KAFKA_STORAGE_ERROR: the directory is offline.
    total_bytes: Size and free space of its file system; -1: not known.
    error_message: Why it is offline. Not in Kafka's form.
    is_cordoned: It gets no new partitions (KIP-1066).
    """

    error_code: int = 0
    path: str
    directory_id: bytes = b""
    topics: tuple[LogDirTopic, ...] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    error_message: str = ""
    is_cordoned: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirsRequest:
    """Move replicas of the broker that gets this to other log directories of it; a replica's own directory cancels
    its move
    (KIP-113). The answer comes once the moves have begun; DescribeLogDirs shows them (`is_future`).
    """

    dirs: tuple[AlterReplicaLogDir, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDir:
    path: str
    topics: tuple[AlterReplicaLogDirTopic, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirTopic:
    name: str
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirsResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirTopicResult:
    name: str
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirPartitionResult:
    """error_code: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR; REPLICA_NOT_AVAILABLE: it will be made in that directory.
    error_message: Not in Kafka's form.
    """

    index: int
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class BringLogDirOnlineRequest:
    """Bring a log directory of the broker that gets this back online, after it was repaired. The answer comes once
    its
    verification has begun; DescribeLogDirs tells when it is over. Not in Kafka.
    """

    path: str


@message(frozen=True, slots=True, kw_only=True)
class BringLogDirOnlineResponse:
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class LogDirTopic:
    name: str
    partitions: tuple[LogDirPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class LogDirPartition:
    """size_bytes: Of all its segments together.
    offset_lag: How far its end is behind the high watermark or, for a future replica, behind the current replica.
    """

    index: int
    size_bytes: int
    offset_lag: int
    is_future: bool = False


@message(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest:
    """The groups whose coordinator the answering broker is. Empty filters let all pass."""

    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse:
    error_code: int = 0
    error_message: str = ""
    groups: tuple[ListedGroup, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    group_id: str
    protocol_type: str = ""
    state: str = ""
    group_type: str = ""


@message(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest:
    """Any broker answers, from its metadata; each key has an error of its own.

    key_type: 0: group; 1: transaction.
    """

    key_type: int = 0
    keys: tuple[str, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    error_code: int = 0
    error_message: str = ""
    coordinators: tuple[Coordinator, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """port: -1: none."""

    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesRequest:
    """Kafka's UpdateFeatures. All updates are carried out, in one batch of the metadata log, or none."""

    updates: tuple[FeatureUpdate, ...] = ()
    timeout_ms: int
    validate_only: bool = False


@message(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """level: 0 turns the feature off.
    upgrade_type: 1: upgrade; 2: downgrade that loses nothing; 3: downgrade that may lose metadata (Kafka's
    numbers).
    """

    name: str
    level: int
    upgrade_type: int = 1


@message(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[UpdateFeatureResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class UpdateFeatureResult:
    name: str
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class DescribeFeaturesRequest:
    pass


@message(frozen=True, slots=True, kw_only=True)
class DescribeFeaturesResponse:
    """As the answering broker's metadata has it. Kafka's clients find the same in the answer to ApiVersions.

    epoch: Of the metadata that the levels were read from: the offset of its last record.
    controllers: Those that are in the metadata: all from metadata.version 3 on, none before.
    """

    error_code: int = 0
    error_message: str = ""
    features: tuple[DescribedFeature, ...] = ()
    epoch: int = -1
    brokers: tuple[NodeFeatures, ...] = ()
    controllers: tuple[NodeFeatures, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribedFeature:
    """min_level: What the answering broker supports.
    finalized_level: 0: the feature is off.
    """

    name: str
    min_level: int
    max_level: int
    finalized_level: int = 0


@message(frozen=True, slots=True, kw_only=True)
class NodeFeatures:
    node_id: int
    features: tuple[FeatureRange, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ExplainCompactionRequest:
    topic: str
    partition: int


@message(frozen=True, slots=True, kw_only=True)
class ExplainCompactionResponse:
    """The compaction of the answering broker's replica of a partition.

    state: For people: what the cleaner does with the log now, or why it does nothing.
    first_dirty_offset: Everything before it is clean; it may be cleaned up to the boundary, exclusive. -1: not
    known.
    blocked_bytes: Dirty, behind the boundary.
    failures: In a row; the last one says why.
    last_round_ms: The newest round of this process; -1: there was none.
    """

    error_code: int = 0
    error_message: str = ""
    state: str = ""
    reason: str = ""
    first_dirty_offset: int = -1
    boundary_offset: int = -1
    clean_bytes: int = 0
    dirty_bytes: int = 0
    blocked_bytes: int = 0
    dirty_percent: int = 0
    failures: int = 0
    failure: str = ""
    retry_in_ms: int = -1
    last_round_ms: int = -1
    last_bytes_before: int = 0
    last_bytes_after: int = 0
