"""Records of the metadata log. Only replayed records change the state of the cluster.

Frame of a record's value: uvarint frame version (0), uvarint record type, uvarint record version, then the
message. Types are Kafka's numbers where Kafka has the record (KIP-631). A record is written from the level of
metadata.version on that its comment names, by default 1; where it names more, each brings the next version of
the record. `@n` marks a field that came with version n; a field without a mark came with version 0.

Written by `./dev proto` from proto/quorumlog/v1/metadata_records.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.common import Endpoint, FeatureRange, QuotaEntity
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """Type 0, from metadata.version 1, 2 and 7 on. A broker came up; it is fenced until it has caught up with its
    own registration.

    features: @1. In the order of names.
    cordoned_directories: @2. Directories that get no new replicas (KIP-1066), ascending; online or not.
    """

    broker_id: int
    incarnation_id: bytes
    broker_epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_directories: tuple[bytes, ...] = ()
    features: tuple[FeatureRange, ...] = ()
    cordoned_directories: tuple[bytes, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord:
    """Type 1."""

    broker_id: int
    broker_epoch: int


@message(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """Type 2."""

    name: str
    topic_id: bytes


@message(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """Type 3. A partition as it is created.

    directories: Parallel to `replicas`.
    """

    partition: int
    topic_id: bytes
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[bytes, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """Type 4. An absent value removes the setting.

    resource_type: 2: topic; 4: broker; 32: group (Kafka's numbers). 100: where durability was raised (decision
    84).
    """

    resource_type: int
    resource_name: str
    name: str
    value: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class NodeList:
    """A list that may be absent ("no change"); a repeated field cannot be absent."""

    nodes: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DirectoryList:
    directories: tuple[bytes, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """Type 5. Changes a partition: the partition epoch rises by 1; if `leader` is set, so does the leader epoch.

    leader: Absent: no change; -1: no leader.
    """

    partition: int
    topic_id: bytes
    isr: NodeList | None = None
    leader: int | None = None
    replicas: NodeList | None = None
    removing_replicas: NodeList | None = None
    adding_replicas: NodeList | None = None
    leader_recovery_state: int | None = None
    eligible_leader_replicas: NodeList | None = None
    last_known_elr: NodeList | None = None
    directories: DirectoryList | None = None


@message(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """Type 9. Removes the topic with all its partitions and configs."""

    topic_id: bytes


@message(frozen=True, slots=True, kw_only=True)
class DelegationTokenRecord:
    """Type 10, from metadata.version 6 on. A delegation token as it is issued or renewed (KIP-48). The secret is not
    in the
    log: it is computed from the id and a key that all brokers have.

    owner: Principals, as in access rules.
    issue_timestamp: Milliseconds since 1970.
    """

    owner: str
    requester: str
    renewers: tuple[str, ...] = ()
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str


@message(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord:
    """Type 11, from metadata.version 5 on.

    mechanism: 1: SCRAM-SHA-256; 2: SCRAM-SHA-512.
    """

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@message(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """Type 12. The cluster uses this level of the feature from here on; level 0 turns the feature off."""

    name: str
    level: int


@message(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord:
    """Type 14, from metadata.version 5 on."""

    entity: tuple[QuotaEntity, ...] = ()
    key: str
    value: float = 0.0
    remove: bool = False


@message(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """Type 15. All producer ids below `next_producer_id` have been allocated."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


@message(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    """Type 17, from metadata.version 1 and 7 on. Absent fields do not change.

    cordoned_directories: @1. See RegisterBrokerRecord.
    """

    broker_id: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    log_directories: DirectoryList | None = None
    cordoned_directories: DirectoryList | None = None


@message(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord:
    """Type 18, from metadata.version 5 on. Numbers are those of Kafka's rules.

    id: 16 bytes.
    """

    id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@message(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord:
    """Type 19, from metadata.version 5 on."""

    id: bytes


@message(frozen=True, slots=True, kw_only=True)
class NoOpRecord:
    """Type 20. Written if no other record is, so that lag and the high watermark advance."""


@message(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord:
    """Type 22, from metadata.version 5 on."""

    name: str
    mechanism: int


@message(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord:
    """Type 23, from metadata.version 6 on. The records up to the next record of type 24 or 25 take effect together
    or not at
    all (KIP-866). It is the first record of its batch.

    name: What the transaction is for, for people.
    """

    name: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord:
    """Type 24, from metadata.version 6 on. The records since the record of type 23 take effect here. It is the last
    record of
    its batch.
    """


@message(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord:
    """Type 25, from metadata.version 6 on. The records since the record of type 23 never take effect. It is the last
    record
    of its batch.
    """

    reason: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class RemoveDelegationTokenRecord:
    """Type 26, from metadata.version 6 on."""

    token_id: str


@message(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord:
    """Type 27, from metadata.version 3 on. A controller's process, with what its software supports.

    features: In the order of names.
    """

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[FeatureRange, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class UnregisterControllerRecord:
    """Type 29, from metadata.version 3 on. The controller is forgotten: it left, or the level falls below 3."""

    controller_id: int


@message(frozen=True, slots=True, kw_only=True)
class DeletedTopicRecord:
    """Type 1000, from metadata.version 3 on. In snapshots only: a topic that was deleted, and whose directories a
    registered broker may still hold.

    offset: Of the RemoveTopicRecord.
    """

    topic_id: bytes
    name: str
    offset: int


@message(frozen=True, slots=True, kw_only=True)
class ForgetDeletedTopicsRecord:
    """Type 1001, from metadata.version 3 on. Every registered broker has reported that it holds no directory of
    these deleted topics.
    """

    topic_ids: tuple[bytes, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class SnapshotStateRecord:
    """Type 1003. In snapshots only, as the last record: what the image built from the records before it must be.

    records: How many records come before this one.
    """

    state_hash: bytes
    records: int


@message(frozen=True, slots=True, kw_only=True)
class ClusterIncarnationRecord:
    """Type 1002, from metadata.version 3 on. Not in Kafka. The cluster was recovered after it had lost its
    majority, and is in this incarnation from here on.

    number: Of recoveries so far; 1 or more.
    id: 16 random bytes.
    """

    number: int
    id: bytes


@message(frozen=True, slots=True, kw_only=True)
class ChangedByRecord:
    """Type 1004, from metadata.version 8 on. Not in Kafka. Who asked for the records before it in its batch or
    transaction. Nothing is made of it: it is in no image and in no snapshot.

    principal: TYPE:NAME.
    host: The client's address, without a port; empty if unknown.
    """

    principal: str
    host: str
    client_id: str


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | DelegationTokenRecord
    | UserScramCredentialRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | NoOpRecord
    | RemoveUserScramCredentialRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | RemoveDelegationTokenRecord
    | RegisterControllerRecord
    | UnregisterControllerRecord
    | DeletedTopicRecord
    | ForgetDeletedTopicsRecord
    | SnapshotStateRecord
    | ClusterIncarnationRecord
    | ChangedByRecord
)
