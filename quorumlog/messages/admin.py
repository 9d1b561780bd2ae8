"""Administration of everything but topics: partition counts, settings, deleted records, and state.

Field by field these are Kafka's messages under our names. The active controller answers requests that change the
cluster's metadata; brokers forward them to it.

Written by `./dev proto` from proto/quorumlog/v1/admin.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequest:
    topics: tuple[PartitionsOfTopic, ...] = ()
    timeout_ms: int
    validate_only: bool = False


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
    """leader_id: -1: no leader."""

    error_code: int = 0
    index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


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
    """low_watermark: The smallest log start offset of all live replicas; -1 with an error."""

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
    """

    error_code: int = 0
    path: str
    directory_id: bytes = b""
    topics: tuple[LogDirTopic, ...] = ()
    total_bytes: int = -1
    usable_bytes: int = -1


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
    """Consumer groups are not supported yet: the answer is empty, so that tools that list them still work."""

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
    """There are no coordinators yet: every key gets an error that clients do not retry for ever.

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
