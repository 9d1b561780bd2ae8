"""The state of the cluster, and users' changes of topics and configs.

Written by `./dev proto` from proto/quorumlog/v1/cluster.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.common import ConfigEntry, Endpoint, FeatureRange
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """all_topics: True: every topic; `topics` is ignored.
    wants_metadata_offset: The answer by the lane has `metadata_offset`, too, which Kafka's message has no field
    for.
    """

    all_topics: bool
    topics: tuple[TopicQuery, ...] = ()
    allow_auto_topic_creation: bool = True
    include_topic_authorized_operations: bool = False
    include_cluster_authorized_operations: bool = False
    wants_metadata_offset: bool = False


@message(frozen=True, slots=True, kw_only=True)
class TopicQuery:
    """A topic by name or, if `topic_id` is not empty, by id."""

    name: str = ""
    topic_id: bytes = b""


@message(frozen=True, slots=True, kw_only=True)
class MetadataResponse:
    """controller_id: A broker that accepts topic and config changes (not the quorum's leader, which clients cannot
    reach); -1: none.
    metadata_offset: Offset of the metadata image behind this answer, exclusive.
    cluster_authorized_operations: Bits of Kafka's operations; the smallest int32: not requested.
    """

    error_code: int = 0
    error_message: str = ""
    brokers: tuple[BrokerMetadata, ...] = ()
    cluster_id: str = ""
    controller_id: int = -1
    topics: tuple[TopicMetadata, ...] = ()
    metadata_offset: int = -1
    throttle_time_ms: int = 0
    cluster_authorized_operations: int = -2147483648


@message(frozen=True, slots=True, kw_only=True)
class BrokerMetadata:
    """host: The advertised address of the listener on which the request arrived.
    endpoints: Every client listener of the broker.
    """

    node_id: int
    host: str
    port: int
    rack: str | None = None
    endpoints: tuple[Endpoint, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """authorized_operations: Bits of Kafka's operations; the smallest int32: not requested."""

    error_code: int = 0
    name: str = ""
    topic_id: bytes = b""
    is_internal: bool = False
    partitions: tuple[PartitionMetadata, ...] = ()
    error_message: str = ""
    authorized_operations: int = -2147483648


@message(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
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
    offline_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribeClusterRequest:
    """endpoint_type: 1: brokers; 2: controllers, which clients cannot reach.
    max_recent_images: The answer names at most so many of the broker's newest metadata images.
    include_partition_counts: Count what each broker holds, too.
    """

    include_fenced_brokers: bool = False
    endpoint_type: int = 1
    include_cluster_authorized_operations: bool = False
    max_recent_images: int = 0
    include_partition_counts: bool = False


@message(frozen=True, slots=True, kw_only=True)
class ImageHash:
    """The hash of a metadata image. Images of one offset have one hash on all nodes.

    offset: Exclusive end of the records that the image holds.
    """

    offset: int
    state_hash: bytes


@message(frozen=True, slots=True, kw_only=True)
class DescribeClusterResponse:
    """state_hash: Hash of the metadata image at `metadata_offset`, 16 bytes.
    cluster_authorized_operations: Bits of Kafka's operations; the smallest int32: not requested.
    recent_images: Ascending by offset.
    """

    error_code: int = 0
    error_message: str = ""
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[ClusterBroker, ...] = ()
    metadata_offset: int = -1
    state_hash: bytes = b""
    endpoint_type: int = 1
    cluster_authorized_operations: int = -2147483648
    throttle_time_ms: int = 0
    recent_images: tuple[ImageHash, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ClusterBroker:
    """in_controlled_shutdown: Not in Kafka, as all that follows: it serves until what it leads has moved away.
    log_directories: The ids of those that are online.
    features: In the order of names.
    leaders: Partitions that it leads, and of which it is a replica; -1: not requested.
    cordoned_directories: The ids of those that get no new replicas (KIP-1066), as far as the controller knows.
    """

    node_id: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = False
    broker_epoch: int = -1
    endpoints: tuple[Endpoint, ...] = ()
    in_controlled_shutdown: bool = False
    log_directories: tuple[bytes, ...] = ()
    features: tuple[FeatureRange, ...] = ()
    leaders: int = -1
    replicas: int = -1
    cordoned_directories: tuple[bytes, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequest:
    """takes_throttling: The client understands THROTTLING_QUOTA_EXCEEDED (KIP-599; version 6)."""

    topics: tuple[CreatableTopic, ...] = ()
    timeout_ms: int
    validate_only: bool = False
    takes_throttling: bool = True


@message(frozen=True, slots=True, kw_only=True)
class CreatableTopic:
    """num_partitions: -1: `num.partitions`, or the number of `assignments`.
    replication_factor: -1: `default.replication.factor`.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[ReplicaAssignment, ...] = ()
    configs: tuple[ConfigEntry, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ReplicaAssignment:
    """Manually assigned replicas of one partition. The first is the preferred leader."""

    partition: int
    broker_ids: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class CreateTopicsResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[CreateTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class CreateTopicResult:
    """configs: The topic's settings; with `validate_only` those that it would have."""

    name: str
    error_code: int = 0
    error_message: str = ""
    topic_id: bytes = b""
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[DescribedConfig, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    """takes_throttling: The client understands THROTTLING_QUOTA_EXCEEDED (KIP-599; version 5)."""

    topics: tuple[TopicQuery, ...] = ()
    timeout_ms: int
    takes_throttling: bool = True


@message(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[DeleteTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DeleteTopicResult:
    name: str
    topic_id: bytes = b""
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest:
    resources: tuple[ConfigResource, ...] = ()
    include_synonyms: bool = False
    include_documentation: bool = True


@message(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    """resource_type: 2: topic; 4: broker (Kafka's numbers).
    names: Empty: every key.
    """

    resource_type: int
    resource_name: str
    names: tuple[str, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[ConfigDescription, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ConfigDescription:
    resource_type: int
    resource_name: str
    error_code: int = 0
    error_message: str = ""
    configs: tuple[DescribedConfig, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribedConfig:
    """source: Kafka's numbers: 1 set on the topic, 2 on this broker, 3 on all brokers, 4 in the broker's file; 5
    default.
    is_sensitive: True: the value is secret and left out.
    config_type: 0 unknown, 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password, as
    Kafka has it.
    synonyms: The settings that can define the value; the first one wins.
    """

    name: str
    value: str | None = None
    source: int
    read_only: bool = False
    documentation: str = ""
    is_sensitive: bool = False
    config_type: int = 0
    synonyms: tuple[ConfigSynonym, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    name: str
    value: str | None = None
    source: int
