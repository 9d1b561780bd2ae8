"""What administrators ask for beside topics: more partitions, settings, deleted records, and how things are.

Field by field these are Kafka's messages in our names. Requests that change the cluster's metadata are answered
by
the active controller; brokers hand them on.

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
    """count: How many partitions the topic shall have, with those that it has.
    assignments: Replicas of each new partition, in the order of their numbers; none: the controller places them.
    """

    name: str
    count: int
    assignments: tuple[NewPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class NewPartition:
    """The first of the brokers is preferred as leader."""

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
    """resource_type: 2: topic; 4: broker, of which the empty name is the default for all (Kafka's numbers).
    replace: What is set and not named here is taken back: Kafka's AlterConfigs, beside which this one is the
    newer.
    """

    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...] = ()
    replace: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AlterableConfig:
    """operation: 0: set; 1: delete (back to the default); 2: append to and 3: subtract from a list, words separated
    by commas.
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
    """topics: None: every topic.
    response_partition_limit: Most partitions of one answer.
    cursor: Where to go on: a `next_cursor` that was answered.
    """

    topics: tuple[str, ...] = ()
    response_partition_limit: int = 2000
    cursor: PartitionCursor | None = None


@message(frozen=True, slots=True, kw_only=True)
class PartitionCursor:
    """The first partition that is still to be told; topics are told in the order of their names."""

    topic_name: str
    partition_index: int


@message(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponse:
    """next_cursor: Set where the answer ended before all was told."""

    error_code: int = 0
    error_message: str = ""
    topics: tuple[TopicPartitionsDescription, ...] = ()
    next_cursor: PartitionCursor | None = None
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class TopicPartitionsDescription:
    """authorized_operations: Bits of Kafka's operations; the smallest int32: not asked for."""

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
    """offset: Records below it go; -1: all below the high watermark."""

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
    """low_watermark: The smallest log start of all live replicas; -1 with an error."""

    index: int
    error_code: int = 0
    low_watermark: int = -1


@message(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest:
    """all_topics: True: every partition that the broker has; `topics` is ignored."""

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
    """error_code: KAFKA_STORAGE_ERROR: it is offline.
    total_bytes: Of the file system that holds it; -1: not known.
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
    """size_bytes: Of all its segments.
    offset_lag: How far its end is behind the high watermark, or, of a future replica, behind the current one.
    """

    index: int
    size_bytes: int
    offset_lag: int
    is_future: bool = False


@message(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest:
    """Consumer groups are not there yet: the answer is empty, so that tools that list them still work."""

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
    """There are no coordinators yet: every key is answered with an error that clients do not try again for ever.

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
