"""Written by `proto/generate_blocking.py` from `AsyncAdmin`; change that one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quorumlog.client import real_edges as edge
from quorumlog.client.admin import RECENT_IMAGES, TOPIC_RESOURCE
from quorumlog.client.administration.acls import EVERY
from quorumlog.client.administration.partitions import ElectionType
from quorumlog.client.handover.loop import Blocking
from quorumlog.ids import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from quorumlog.client.admin import AsyncAdmin, NewTopic
    from quorumlog.client.administration.backup_cut import Cut, CutTopics
    from quorumlog.client.administration.config_change import ConfigChange
    from quorumlog.client.administration.export_partition import Take
    from quorumlog.client.administration.group_lag import GroupLag
    from quorumlog.client.administration.groups import GroupDescription
    from quorumlog.client.administration.hanging import HangingTransaction
    from quorumlog.client.administration.import_topic import Source
    from quorumlog.client.administration.partitions import PartitionOutcome, Reassignment
    from quorumlog.client.administration.quotas import Filter, QuotaChange, QuotaOutcome
    from quorumlog.client.administration.ranges import RangeQuery
    from quorumlog.client.administration.transactions import (
        OpenProducer,
        Outcome,
        TransactionDescription,
        TransactionListing,
        TransactionPlace,
    )
    from quorumlog.client.administration.users import Change, Iterations, UserOutcome
    from quorumlog.client.cluster.metadata_cache import LeaderPlace, TopicLife
    from quorumlog.client.group.offsets import CommittedOffset
    from quorumlog.client.offsets import FoundOffset
    from quorumlog.errors import ErrorCode
    from quorumlog.ids import BrokerEpoch, NodeId, Offset, TopicPartition, Uuid
    from quorumlog.messages.admin import (
        DescribeFeaturesResponse,
        ExplainCompactionResponse,
        FeatureUpdate,
        ListedGroup,
        LogDirDescription,
    )
    from quorumlog.messages.brokers import AclResult, DescribeAclsRequest
    from quorumlog.messages.cluster import (
        ConfigDescription,
        CreateTopicResult,
        DeleteTopicResult,
        DescribeClusterResponse,
        MetadataResponse,
        TopicMetadata,
    )
    from quorumlog.messages.common import Endpoint
    from quorumlog.messages.events import DescribeEventsResponse
    from quorumlog.messages.fetch import CountedRecords, OffsetRange
    from quorumlog.messages.imports import BeginImportResponse
    from quorumlog.messages.joint import AbortJointResponse, ListedJointGroup
    from quorumlog.messages.quorum import DescribeQuorumResponse, TransferLeadershipResponse
    from quorumlog.messages.quotas import DescribeQuotaUseResponse
    from quorumlog.messages.transactions import ActiveProducer, DescribedTransaction
    from quorumlog.security.acl.content import AclContent
    from quorumlog.security.quota.entity import Entity


class Admin(Blocking):
    """`AsyncAdmin` without `await`."""

    _client: AsyncAdmin

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(lambda: edge.admin(dict(config or {}), **options))

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        exist_ok: bool = False,
        validate_only: bool = False,
    ) -> CreateTopicResult:
        """See `NewTopic`. Raises RequestFailed: TOPIC_ALREADY_EXISTS unless exist_ok, INVALID_CONFIG,
        INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT...
        """
        return self._thread.run(
            self._client.create_topic(
                name,
                partitions,
                replication,
                configs,
                assignment=assignment,
                exist_ok=exist_ok,
                validate_only=validate_only,
            )
        )

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, retry_on_quota_violation: bool = True
    ) -> list[CreateTopicResult]:
        """One result per topic; each carries its error. `retried_change.py` says how a retry treats topics that
        exist. retry_on_quota_violation: ask again for what a quota refuses now (`permitted_change.py`).
        """
        return self._thread.run(
            self._client.create_topics(
                list(topics), validate_only=validate_only, retry_on_quota_violation=retry_on_quota_violation
            )
        )

    def delete_topic(self, name: str) -> None:
        self._thread.run(self._client.delete_topic(name))

    def delete_topics(self, names: Iterable[str], *, retry_on_quota_violation: bool = True) -> list[DeleteTopicResult]:
        """One result per topic; each carries its error. retry_on_quota_violation: as of `create_topics`."""
        return self._thread.run(
            self._client.delete_topics(list(names), retry_on_quota_violation=retry_on_quota_violation)
        )

    def delete_topics_by_id(
        self, ids: Iterable[Uuid], *, retry_on_quota_violation: bool = True
    ) -> list[DeleteTopicResult]:
        """As `delete_topics`. A request that comes late cannot delete a later topic of the same name."""
        return self._thread.run(
            self._client.delete_topics_by_id(list(ids), retry_on_quota_violation=retry_on_quota_violation)
        )

    def list_topics(self) -> list[TopicMetadata]:
        """All topics, sorted by name."""
        return self._thread.run(self._client.list_topics())

    def describe_topic(self, name: str) -> TopicMetadata:
        return self._thread.run(self._client.describe_topic(name))

    def describe_topics(self, names: Sequence[str]) -> list[TopicMetadata]:
        """One result per name, in their order, by one request; each carries its error."""
        return self._thread.run(self._client.describe_topics(names))

    def leader_of(self, name: str, partition: int) -> LeaderPlace | None:
        """Who leads it, in the newest metadata that this client has seen; None: nobody, or unknown. Asks nobody."""
        return self._client.leader_of(name, partition)

    def topic_life(self, name: str) -> TopicLife:
        """Which topic has the name, in the newest metadata that this client has seen. Asks nobody."""
        return self._client.topic_life(name)

    def learn(self, name: str, life: TopicLife) -> None:
        """Somebody else has heard of this topic: what brokers say that know only a former one does not count."""
        self._client.learn(name, life)

    def prove_cluster(self) -> None:
        """Raises WrongCluster if the nodes that answer are not of the cluster that `cluster_id` names."""
        self._thread.run(self._client.prove_cluster())

    def metadata(self) -> MetadataResponse:
        return self._thread.run(self._client.metadata())

    def recent_images(self, count: int = RECENT_IMAGES) -> dict[NodeId, dict[Offset, bytes]]:
        """Of each broker in the metadata, the hashes of its newest metadata images by offset, at most `count`.

        Brokers that agree have the same hash at the same offset.
        """
        return self._thread.run(self._client.recent_images(count))

    def explain_compaction(self, topic: str, partition: int) -> dict[NodeId, ExplainCompactionResponse]:
        """Of each replica, by broker: what its cleaner does, or why it does nothing. An answer may hold an error.

        Raises RequestFailed: UNKNOWN_TOPIC_OR_PARTITION.
        """
        return self._thread.run(self._client.explain_compaction(topic, partition))

    def describe_configs(
        self, name: str, *, resource_type: int = TOPIC_RESOURCE, names: Sequence[str] = ()
    ) -> ConfigDescription:
        """name: a topic; or a broker id (that broker is asked), also for the levels of its loggers; or "" for the
        defaults of all brokers."""
        return self._thread.run(self._client.describe_configs(name, resource_type=resource_type, names=names))

    def describe_topics_configs(
        self, topics: Iterable[str], *, names: Sequence[str] = ()
    ) -> dict[str, ConfigDescription]:
        """The settings of many topics, TOPICS_AT_ONCE of them a request. names: only these settings; empty: all.

        A topic that does not exist is left out. Raises RequestFailed for any other error of a topic.
        """
        return self._thread.run(self._client.describe_topics_configs(list(topics), names=names))

    def alter_configs(
        self,
        name: str,
        changes: Mapping[str, ConfigChange],
        *,
        resource_type: int = TOPIC_RESOURCE,
        validate_only: bool = False,
    ) -> None:
        """Change these settings and keep the others. None sets the default again. name: as in `describe_configs`.

        Calls made while others are under way share requests; those for one topic or group are carried out in
        their order. Settings of one broker are sent alone, to that broker: it knows its file and checks them, and its
        loggers. If it is silent, another one is asked.
        Raises RequestFailed: INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED.
        """
        self._thread.run(
            self._client.alter_configs(name, changes, resource_type=resource_type, validate_only=validate_only)
        )

    def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
    ) -> None:
        """Raise a topic's partition count to `count`. assignment: broker ids of each new partition, the leader first.

        Raises RequestFailed; INVALID_PARTITIONS also if a lost first try had added the partitions already.
        """
        self._thread.run(
            self._client.create_partitions(
                name,
                count,
                assignment=assignment,
                validate_only=validate_only,
                retry_on_quota_violation=retry_on_quota_violation,
            )
        )

    def describe_cluster(
        self, *, include_fenced_brokers: bool = True, include_partition_counts: bool = False
    ) -> DescribeClusterResponse:
        return self._thread.run(
            self._client.describe_cluster(
                include_fenced_brokers=include_fenced_brokers, include_partition_counts=include_partition_counts
            )
        )

    def describe_broker_log_dirs(self, node_id: NodeId, timeout_ms: int | None = None) -> tuple[LogDirDescription, ...]:
        """Of one broker that is not fenced. timeout_ms: None: request.timeout.ms. Raises RpcError, RequestFailed."""
        return self._thread.run(self._client.describe_broker_log_dirs(node_id, timeout_ms))

    def unregister_broker(self, broker_id: NodeId, broker_epoch: BrokerEpoch = -1) -> None:
        """Let the cluster forget a broker that is gone for good. A running one registers again.

        broker_epoch: of the registration that is meant; -1: whichever there is.
        Raises RequestFailed: BROKER_ID_NOT_REGISTERED; STALE_BROKER_EPOCH if it has registered since.
        """
        self._thread.run(self._client.unregister_broker(broker_id, broker_epoch))

    def describe_quorum(self, timeout_ms: int | None = None) -> DescribeQuorumResponse:
        """timeout_ms: None: default.api.timeout.ms."""
        return self._thread.run(self._client.describe_quorum(timeout_ms))

    def add_voter(self, node_id: NodeId, directory_id: Uuid, endpoints: Sequence[Endpoint], timeout_ms: int) -> None:
        """Make a controller a voter. endpoints: one of them with the name of the internal listener.

        timeout_ms: how long the leader may wait until the node has copied the log. Raises RequestFailed.
        """
        self._thread.run(self._client.add_voter(node_id, directory_id, endpoints, timeout_ms))

    def remove_voter(self, node_id: NodeId, directory_id: Uuid) -> None:
        """Raises RequestFailed."""
        self._thread.run(self._client.remove_voter(node_id, directory_id))

    def transfer_leadership(self, to_node_id: NodeId = NO_NODE) -> TransferLeadershipResponse:
        """Hand the leadership of the quorum over to this voter; NO_NODE: to the one that is ready first.

        The response names who leads then. Raises RequestFailed: VOTER_NOT_FOUND; REQUEST_TIMED_OUT if the voter had
        not caught up, and the old leader goes on; PREFERRED_LEADER_NOT_AVAILABLE if another voter was elected.
        """
        return self._thread.run(self._client.transfer_leadership(to_node_id))

    def describe_features(self) -> DescribeFeaturesResponse:
        """The levels in force, and which levels each node supports."""
        return self._thread.run(self._client.describe_features())

    def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        """Carry out all updates or none. An update that was carried out already is no error, so a retry does no harm.

        Raises RequestFailed: INVALID_UPDATE_VERSION, INVALID_REQUEST.
        """
        self._thread.run(self._client.update_features(updates, validate_only=validate_only))

    def create_acls(self, acls: Iterable[AclContent]) -> list[AclResult]:
        """One result per rule; each carries its error. A rule that is there already is no error.

        Raises RequestFailed: SECURITY_DISABLED where no authorizer is on.
        """
        return self._thread.run(self._client.create_acls(list(acls)))

    def describe_acls(self, wanted: DescribeAclsRequest = EVERY, *, node_id: NodeId | None = None) -> list[AclContent]:
        """The rules that a filter matches, by type, name and pattern. node_id: as this broker has them; None: any one.

        Raises RequestFailed, as `create_acls`.
        """
        return self._thread.run(self._client.describe_acls(wanted, node_id=node_id))

    def delete_acls(self, filters: Iterable[DescribeAclsRequest]) -> list[list[AclContent]]:
        """The rules that each filter matched, which are gone. Raises RequestFailed, as `create_acls`."""
        return self._thread.run(self._client.delete_acls(list(filters)))

    def import_topic(
        self,
        name: str,
        sources: Sequence[Source],
        replication: int = -1,
        configs: Mapping[str, str] | None = None,
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> BeginImportResponse:
        """Copy foreign logs into a new topic: source n into partition n. `import_topic.py` says what holds.

        on_progress: bytes that replicas have taken, and that they will take in all. Raises RequestFailed: among others
        TOPIC_ALREADY_EXISTS; OtherSource; Unavailable.
        """
        return self._thread.run(self._client.import_topic(name, sources, replication, configs, on_progress))

    def export_partition(
        self, topic: str, index: int, take: Take, *, end: int | None = None, topic_id: Uuid | None = None
    ) -> Uuid:
        """Read a partition's batches as they are stored, up to its high watermark. Returns the topic's id.

        take: called with each part in order, on the client's loop; it may say for how many seconds the next one has to
        wait. end: exclusive, in place of the high watermark; it
        must not be above it. topic_id: of the topic that is meant; None: whichever has the name.
        Raises RequestFailed, Unavailable, ExportFailed.
        """
        return self._thread.run(self._client.export_partition(topic, index, take, end=end, topic_id=topic_id))

    def take_cut(
        self, understand: Callable[[bytes], CutTopics], new_holder: Callable[[], bytes], timeout_ms: int = 60000
    ) -> Cut:
        """Where each partition ends for a backup, and the metadata of that moment (decision 151).

        Commits of transactions wait meanwhile, for 10 s at most in each try. understand: the topics of a metadata
        snapshot. new_holder: gives 16 random bytes. Raises CutFailed, RequestFailed, Unavailable.
        """
        return self._thread.run(self._client.take_cut(understand, new_holder, timeout_ms))

    def pause_compaction(self, until_ms: int) -> None:
        """No broker begins to compact before this time, in ms since 1970 (decision 152)."""
        self._thread.run(self._client.pause_compaction(until_ms))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete all records before these offsets (-1: the high watermark). Returns each partition's first offset."""
        return self._thread.run(self._client.delete_records(before))

    def describe_log_dirs(
        self, *, timeout_ms: int | None = None, silent: dict[NodeId, str] | None = None
    ) -> dict[NodeId, tuple[LogDirDescription, ...]]:
        """The log directories of every broker that is not fenced, by broker id.

        timeout_ms: of each broker; None: request.timeout.ms. silent: is given why a broker has not answered, and that
        one is left out; a dead broker is not fenced before its session ends, and one that has just started reads the
        metadata first. Without it, raises RpcError and RequestFailed.
        """
        return self._thread.run(self._client.describe_log_dirs(timeout_ms=timeout_ms, silent=silent))

    def alter_replica_log_dirs(self, wanted: Mapping[tuple[str, int, NodeId], str]) -> None:
        """Move replicas to other log directories of their brokers, or cancel their moves.

        wanted: the path by topic, partition and broker. Returns once the moves have begun; `describe_log_dirs` shows
        them. Raises RequestFailed for the first that was refused, after all were asked: LOG_DIR_NOT_FOUND,
        KAFKA_STORAGE_ERROR; REPLICA_NOT_AVAILABLE where it is not there yet, and will be made there.
        """
        self._thread.run(self._client.alter_replica_log_dirs(wanted))

    def describe_quota_use(
        self, *, max_results: int = 20, timeout_ms: int | None = None, silent: dict[NodeId, str] | None = None
    ) -> dict[NodeId, DescribeQuotaUseResponse]:
        """Who uses most of its quota, at every broker that is not fenced, by broker id.

        max_results: of each broker, those that use most of it first. timeout_ms, silent: as of `describe_log_dirs`.
        """
        return self._thread.run(
            self._client.describe_quota_use(max_results=max_results, timeout_ms=timeout_ms, silent=silent)
        )

    def describe_events(
        self,
        *,
        since_ms: int = 0,
        kinds: Sequence[str] = (),
        subject: str = "",
        limit: int = 1000,
        timeout_ms: int | None = None,
        silent: dict[NodeId, str] | None = None,
    ) -> dict[NodeId, DescribeEventsResponse]:
        """What has happened at every broker that is not fenced, by broker id; each tells of its own ring.

        since_ms: milliseconds since 1970, inclusive. kinds: whole (broker.fenced) or their first words (broker); none:
        all. subject: partition/orders-4, or with a * at its end all that begin so; empty: all. limit: of each broker,
        its newest. timeout_ms, silent: as of `describe_log_dirs`. An Apache Kafka has no such call.
        """
        return self._thread.run(
            self._client.describe_events(
                since_ms=since_ms, kinds=kinds, subject=subject, limit=limit, timeout_ms=timeout_ms, silent=silent
            )
        )

    def bring_log_dir_online(self, node_id: NodeId, path: str) -> None:
        """Let a broker verify a log directory that was repaired; `describe_log_dirs` tells when it is online.

        Raises RequestFailed: LOG_DIR_NOT_FOUND, INVALID_REQUEST where it is not offline, KAFKA_STORAGE_ERROR where it
        stays so.
        """
        self._thread.run(self._client.bring_log_dir_online(node_id, path))

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, FoundOffset]:
        """Offsets for timestamps in ms, or for LATEST, EARLIEST, MAX_TIMESTAMP of `quorumlog.client.offsets`."""
        return self._thread.run(self._client.list_offsets(wanted, isolation_level=isolation_level))

    def list_offset_ranges(
        self,
        wanted: Iterable[TopicPartition],
        timeout_ms: int | None = None,
        *,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, tuple[FoundOffset, FoundOffset]]:
        """EARLIEST and LATEST of each partition; all leaders are asked at once. timeout_ms: None: the default."""
        return self._thread.run(
            self._client.list_offset_ranges(list(wanted), timeout_ms, isolation_level=isolation_level)
        )

    def describe_ranges(
        self, wanted: Mapping[TopicPartition, RangeQuery], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        """How many bytes which offsets take, and where batches end: see `ranges.describe_ranges`."""
        return self._thread.run(self._client.describe_ranges(wanted, isolation_level=isolation_level))

    def count_records(
        self, wanted: Mapping[TopicPartition, Offset], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, CountedRecords]:
        """How many records a reader would get from an offset on: see `counts.count_records`."""
        return self._thread.run(self._client.count_records(wanted, isolation_level=isolation_level))

    def alter_partition_reassignments(
        self, wanted: Mapping[TopicPartition, Sequence[NodeId] | None]
    ) -> dict[TopicPartition, PartitionOutcome]:
        """Begin to move partitions to these replicas, the preferred leader first. None: end the move under way.

        Returns once they have begun: among others INVALID_REPLICA_ASSIGNMENT, UNKNOWN_TOPIC_OR_PARTITION,
        NO_REASSIGNMENT_IN_PROGRESS for a cancellation. Raises RequestFailed, Unavailable.
        """
        return self._thread.run(self._client.alter_partition_reassignments(wanted))

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The reassignments under way; of these partitions only, unless None. Raises RequestFailed, Unavailable."""
        return self._thread.run(
            self._client.list_partition_reassignments(list(partitions) if partitions is not None else None)
        )

    def elect_leaders(
        self, election: ElectionType = ElectionType.PREFERRED, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionOutcome]:
        """Elect leaders of these partitions, or of every one that needs it if None.

        ELECTION_NOT_NEEDED: it is led so already. PREFERRED_LEADER_NOT_AVAILABLE: its first replica is not in sync.
        ELIGIBLE_LEADERS_NOT_AVAILABLE: none can lead. Raises RequestFailed, Unavailable.
        """
        return self._thread.run(
            self._client.elect_leaders(election, list(partitions) if partitions is not None else None)
        )

    def describe_user_scram_credentials(self, users: Iterable[str] | None = None) -> dict[str, Iterations]:
        """The SCRAM credentials of these users, or of all if None: mechanism and iterations. A user without one is left
        out. Raises RequestFailed, Unavailable.
        """
        return self._thread.run(
            self._client.describe_user_scram_credentials(list(users) if users is not None else None)
        )

    def alter_user_scram_credentials(self, changes: Iterable[Change]) -> dict[Change, UserOutcome]:
        """Set passwords and delete credentials. What is sent of a password is as good as it is: use TLS.

        UNACCEPTABLE_CREDENTIAL: also on a connection that others can read. RESOURCE_NOT_FOUND: there is nothing to
        delete. Raises RequestFailed, Unavailable.
        """
        return self._thread.run(self._client.alter_user_scram_credentials(list(changes)))

    def describe_client_quotas(
        self, wanted: Filter | None = None, *, strict: bool = False
    ) -> dict[Entity, dict[str, float]]:
        """The quotas of the entities that fit: values by key.

        wanted: by `user`, `client-id` or `ip`: a name; None: the default; ANY_NAME: both. None of them: every entity.
        strict: only entities with no other types. Raises RequestFailed, Unavailable.
        """
        return self._thread.run(self._client.describe_client_quotas(wanted, strict=strict))

    def alter_client_quotas(
        self, changes: Iterable[QuotaChange], *, validate_only: bool = False
    ) -> dict[Entity, QuotaOutcome]:
        """Set and remove quotas. INVALID_REQUEST says what no quota can be.

        Raises BadQuota for an entity that there cannot be; RequestFailed, Unavailable.
        """
        return self._thread.run(self._client.alter_client_quotas(list(changes), validate_only=validate_only))

    def list_groups(self, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        """The groups of all brokers, by name. states, types: only these, in any case (Stable...; classic, consumer).

        Raises RequestFailed, RpcError if a broker has not answered in time: a list without its groups would be wrong.
        """
        return self._thread.run(self._client.list_groups(states=states, types=types))

    def describe_group(self, group_id: str) -> GroupDescription:
        """Raises RequestFailed, but not for a group that does not exist."""
        return self._thread.run(self._client.describe_group(group_id))

    def delete_group(self, group_id: str) -> None:
        """With all its offsets. Raises RequestFailed: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP while it has members."""
        self._thread.run(self._client.delete_group(group_id))

    def group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, of all its partitions if None. A partition without an offset is not in it.

        require_stable: wait for open transactions that may still change an offset. Raises RequestFailed.
        """
        return self._thread.run(
            self._client.group_offsets(
                group_id, list(partitions) if partitions is not None else None, require_stable=require_stable
            )
        )

    def group_lag(self, group_id: str, *, isolation_level: str = "read_uncommitted") -> GroupLag:
        """How far the group is behind: in records that it can read, in time, and as a distance of offsets.

        A Kafka tells the distance only. isolation_level: with read_committed, the end is the last stable offset;
        records of aborted transactions count for neither. A group that does not exist has the state Dead. Raises
        RequestFailed, RpcError, Unavailable.
        """
        return self._thread.run(self._client.group_lag(group_id, isolation_level=isolation_level))

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ErrorCode]:
        """Commit these offsets for a group without members; it is made if there is none. The error of each.

        UNKNOWN_MEMBER_ID: the group has members. Raises RequestFailed for an error of all.
        """
        return self._thread.run(self._client.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Forget these offsets. The error of each: GROUP_SUBSCRIBED_TO_TOPIC while a member reads it.

        Raises RequestFailed for an error of all: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        return self._thread.run(self._client.delete_group_offsets(group_id, list(partitions)))

    def list_transactions(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all brokers, by name. states: as Kafka names them (Ongoing, PrepareCommit...).

        duration_ms: only of transactions that are open for longer. pattern: RE2, for the whole id.
        Raises RequestFailed: INVALID_REQUEST for a state that does not exist; RpcError if a broker has not answered in
        time, since a list without its ids would be wrong.
        """
        return self._thread.run(
            self._client.list_transactions(
                states=states, producer_ids=producer_ids, duration_ms=duration_ms, pattern=pattern
            )
        )

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """Raises RequestFailed: TRANSACTIONAL_ID_NOT_FOUND."""
        return self._thread.run(self._client.describe_transaction(transactional_id))

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: NodeId | None = None
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        """What each partition's leader, or the replica of this broker, knows of producers.

        Raises RequestFailed: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (no replica there).
        """
        return self._thread.run(self._client.describe_producers(list(partitions), broker_id=broker_id))

    def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = -1
    ) -> None:
        """Write an abort marker to a partition whose transaction no coordinator ends any more. Nothing else is touched.

        coordinator_epoch: as DescribeProducers says; -1: it knows none. Raises RequestFailed: TRANSACTION_COORDINATOR_
        FENCED, INVALID_PRODUCER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        self._thread.run(self._client.abort_transaction(partition, producer_id, producer_epoch, coordinator_epoch))

    def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Take the id from its producer, which aborts its transaction. Returns the new producer id and epoch.

        The id is made if it does not exist. Raises RequestFailed.
        """
        return self._thread.run(self._client.fence_producer(transactional_id))

    def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], max_timeout_ms: int, *, now_ms: int, broker_id: NodeId | None = None
    ) -> list[HangingTransaction]:
        """Transactions that no coordinator will end: open for longer than any may be, and not known to one.

        max_timeout_ms: transaction.max.timeout.ms of the brokers. now_ms: ms since 1970.
        """
        return self._thread.run(
            self._client.find_hanging_transactions(list(partitions), max_timeout_ms, now_ms=now_ms, broker_id=broker_id)
        )

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """By id; those that no coordinator knows are absent. Raises RequestFailed, RpcError, Unavailable."""
        return self._thread.run(self._client.describe_transactions(list(transactional_ids)))

    def end_transactions(self, producers: Sequence[OpenProducer], *, commit: bool) -> dict[str, ErrorCode]:
        """By id, what its coordinator said. Each is asked once; a retriable code also stands for no answer: it may have
        been carried out. Raises RequestFailed, RpcError, Unavailable if nobody was asked."""
        return self._thread.run(self._client.end_transactions(producers, commit=commit))

    def transaction_outcome(self, producer_id: int, place: TransactionPlace) -> Outcome:
        """How the only transaction that this producer ever had has ended, as this partition's log tells.

        Once nothing is open up to its last offset, the leader's list of aborted transactions tells. Before that, or
        where its records are gone, the producer's marker behind them does. Raises RequestFailed, RpcError, Unavailable.
        """
        return self._thread.run(self._client.transaction_outcome(producer_id, place))

    def list_joint_groups(self) -> list[ListedJointGroup]:
        """See `joint_groups`."""
        return self._thread.run(self._client.list_joint_groups())

    def abort_joint_batch(self, group_id: str, location: str, sequence: int) -> AbortJointResponse:
        """Abort what is open of a batch, whatever its runs. Nothing is done to one that is decided. Raises
        RequestFailed."""
        return self._thread.run(self._client.abort_joint_batch(group_id, location, sequence))

    def forget_joint_group(self, group_id: str) -> None:
        """Its next writer begins anew. Raises RequestFailed: JOINT_GROUP_OPEN, GROUP_ID_NOT_FOUND."""
        self._thread.run(self._client.forget_joint_group(group_id))

    def metrics(self) -> dict[str, int]:
        """What this client counts, read now; by Kafka's names."""
        return self._client.metrics()
