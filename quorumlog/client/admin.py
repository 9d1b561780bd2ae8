"""The asynchronous admin client. It turns error codes into exceptions.

A call that is one request is here; what takes several requests, or decides between them, lies in `administration/`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorumlog.client.administration.acls import EVERY, create_acls, delete_acls, describe_acls
from quorumlog.client.administration.backup_cut import Cut, CutTaker, CutTopics
from quorumlog.client.administration.config_batches import ConfigBatches
from quorumlog.client.administration.config_change import ConfigChange, alterable
from quorumlog.client.administration.counts import count_records
from quorumlog.client.administration.export_partition import PartitionExport, Take
from quorumlog.client.administration.group_lag import GroupLag, group_lag
from quorumlog.client.administration.groups import DEAD, GroupDescription, described
from quorumlog.client.administration.hanging import HangingTransaction, OpenTransaction, hanging, open_for_long
from quorumlog.client.administration.import_topic import Source, TopicImport
from quorumlog.client.administration.joint import joint_groups, of_joint_group
from quorumlog.client.administration.logs import alter_replica_log_dirs, delete_records
from quorumlog.client.administration.partitions import (
    ElectionType,
    PartitionOutcome,
    Reassignment,
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from quorumlog.client.administration.quorum import with_durations
from quorumlog.client.administration.quotas import Filter, QuotaChange, QuotaOutcome, alter_quotas, describe_quotas
from quorumlog.client.administration.ranges import RangeQuery, describe_ranges
from quorumlog.client.administration.transactions import (
    FENCING_TIMEOUT_MS,
    OF_UNKNOWN_COORDINATOR,
    OpenProducer,
    Outcome,
    TransactionDescription,
    TransactionListing,
    TransactionPlace,
    describe_transactions,
    end_transactions,
    transaction_outcome,
    transaction_topics,
)
from quorumlog.client.administration.users import Change, Iterations, UserOutcome, alter_users, describe_users
from quorumlog.client.cluster.link import check
from quorumlog.client.cluster.linked import Linked
from quorumlog.client.cluster.metadata_cache import LeaderPlace, TopicLife
from quorumlog.client.cluster.permitted_change import permitted_change
from quorumlog.client.cluster.retried_change import RetriedChange
from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.coordinator import GroupCoordinator
from quorumlog.client.group.offsets import CommittedOffset, fetch_offsets, topics_to_commit, topics_to_fetch
from quorumlog.client.offsets import FoundOffset, by_leader, resolve_offsets, resolve_ranges
from quorumlog.client.transactions.coordinators import TransactionCoordinator
from quorumlog.clock import Clock
from quorumlog.configs.cleaner import PAUSED_UNTIL
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Offset, TopicPartition, Uuid
from quorumlog.messages.admin import (
    AlterConfigsResource,
    BringLogDirOnlineRequest,
    BringLogDirOnlineResponse,
    CreatePartitionsRequest,
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ExplainCompactionRequest,
    ExplainCompactionResponse,
    FeatureUpdate,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    LogDirDescription,
    NewPartition,
    PartitionsOfTopic,
    UpdateFeaturesRequest,
)
from quorumlog.messages.brokers import AclResult, DescribeAclsRequest, UnregisterBrokerRequest, UnregisterBrokerResponse
from quorumlog.messages.cluster import (
    ConfigDescription,
    ConfigResource,
    CreatableTopic,
    CreateTopicResult,
    CreateTopicsRequest,
    DeleteTopicResult,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    MetadataResponse,
    ReplicaAssignment,
    TopicMetadata,
    TopicQuery,
)
from quorumlog.messages.common import ConfigEntry, Endpoint
from quorumlog.messages.events import DescribeEventsRequest, DescribeEventsResponse
from quorumlog.messages.fetch import CountedRecords, OffsetRange
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
)
from quorumlog.messages.imports import BeginImportResponse
from quorumlog.messages.joint import AbortJointRequest, AbortJointResponse, ForgetJointRequest, ListedJointGroup
from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from quorumlog.messages.quotas import DescribeQuotaUseRequest, DescribeQuotaUseResponse
from quorumlog.messages.transactions import (
    ActiveProducer,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quorumlog.rpc.transport import RpcError, Transport
from quorumlog.security.acl.content import AclContent
from quorumlog.security.quota.entity import Entity

TOPIC_RESOURCE = 2
BROKER_RESOURCE, BROKER_LOGGER_RESOURCE = 4, 8
OF_ONE_BROKER = (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE)  # which is asked itself
RECENT_IMAGES = 1_000  # asked of each broker
VOTER_MARGIN_MS = 5_000  # added to the time that the leader has, for the way
REMOVE_VOTER_MS = 15_000
LOG_DIR_TIMEOUT_MS = 60_000  # the controller has to know first that it is offline; then it is locked and read
TOPICS_AT_ONCE = 1_000  # whose settings one request asks for; an answer with all of them stays below 16 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """-1: the cluster's default. assignment: broker ids of each partition, the preferred leader first."""

    name: str
    partitions: int = -1
    replication: int = -1
    configs: Mapping[str, str] | None = None
    assignment: Sequence[Sequence[int]] | None = None


class AsyncAdmin(Linked):
    def __init__(
        self,
        transport: Transport,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        **options: Any,
    ) -> None:
        super().__init__(transport, config, clock=clock, rng=rng, **options)
        self._settings = ConfigBatches(self._send_settings)
        self._rng = rng

    async def create_topic(
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
        topic = NewTopic(
            name=name, partitions=partitions, replication=replication, configs=configs, assignment=assignment
        )
        (result,) = await self.create_topics([topic], validate_only=validate_only)
        if not (exist_ok and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS):
            _check_result(result, f"topic {name!r}")
        return result

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, retry_on_quota_violation: bool = True
    ) -> list[CreateTopicResult]:
        """One result per topic; each carries its error. `retried_change.py` says how a retry treats topics that
        exist. retry_on_quota_violation: ask again for what a quota refuses now (`permitted_change.py`).
        """
        request = CreateTopicsRequest(
            topics=tuple(_creatable(topic) for topic in topics),
            timeout_ms=self.options.request_timeout_ms,
            validate_only=validate_only,
        )
        already = ErrorCode.NONE if validate_only else ErrorCode.TOPIC_ALREADY_EXISTS
        return await permitted_change(self._link, request, already, retry_on_quota_violation=retry_on_quota_violation)

    async def delete_topic(self, name: str) -> None:
        (result,) = await self.delete_topics([name])
        _check_result(result, f"topic {name!r}")

    async def delete_topics(
        self, names: Iterable[str], *, retry_on_quota_violation: bool = True
    ) -> list[DeleteTopicResult]:
        """One result per topic; each carries its error. retry_on_quota_violation: as of `create_topics`."""
        request = DeleteTopicsRequest(
            topics=tuple(TopicQuery(name=name) for name in names), timeout_ms=self.options.request_timeout_ms
        )
        already = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return await permitted_change(self._link, request, already, retry_on_quota_violation=retry_on_quota_violation)

    async def delete_topics_by_id(
        self, ids: Iterable[Uuid], *, retry_on_quota_violation: bool = True
    ) -> list[DeleteTopicResult]:
        """As `delete_topics`. A request that comes late cannot delete a later topic of the same name."""
        request = DeleteTopicsRequest(
            topics=tuple(TopicQuery(topic_id=topic_id) for topic_id in ids), timeout_ms=self.options.request_timeout_ms
        )
        already = ErrorCode.UNKNOWN_TOPIC_ID
        return await permitted_change(self._link, request, already, retry_on_quota_violation=retry_on_quota_violation)

    async def list_topics(self) -> list[TopicMetadata]:
        """All topics, sorted by name."""
        response = await self._link.metadata([], all_topics=True, create=False)
        return sorted(response.topics, key=lambda topic: topic.name)

    async def describe_topic(self, name: str) -> TopicMetadata:
        (topic,) = await self.describe_topics([name])
        _check_result(topic, f"topic {name!r}")
        return topic

    async def describe_topics(self, names: Sequence[str]) -> list[TopicMetadata]:
        """One result per name, in their order, by one request; each carries its error."""
        if not names:
            return []
        response = await self._link.metadata(names, create=False)
        self._link.take(response)  # their leaders are asked next, as a rule
        found = {topic.name: topic for topic in response.topics}
        return [found[name] for name in names]

    def leader_of(self, name: str, partition: int) -> LeaderPlace | None:
        """Who leads it, in the newest metadata that this client has seen; None: nobody, or unknown. Asks nobody."""
        return self._link.cache.leader_place(name, partition)

    def topic_life(self, name: str) -> TopicLife:
        """Which topic has the name, in the newest metadata that this client has seen. Asks nobody."""
        return self._link.cache.life_of(name)

    def learn(self, name: str, life: TopicLife) -> None:
        """Somebody else has heard of this topic: what brokers say that know only a former one does not count."""
        self._link.cache.learn(name, life)

    async def prove_cluster(self) -> None:
        """Raises WrongCluster if the nodes that answer are not of the cluster that `cluster_id` names."""
        await self._link.metadata([])

    async def metadata(self) -> MetadataResponse:
        return await self._link.metadata([], all_topics=True, create=False)

    async def recent_images(self, count: int = RECENT_IMAGES) -> dict[NodeId, dict[Offset, bytes]]:
        """Of each broker in the metadata, the hashes of its newest metadata images by offset, at most `count`.

        Brokers that agree have the same hash at the same offset.
        """
        await self._link.refresh([])
        found: dict[NodeId, dict[Offset, bytes]] = {}
        for node_id in sorted(self._link.cache.brokers):
            request = DescribeClusterRequest(max_recent_images=count)
            response: DescribeClusterResponse = await self._link.call_node(node_id, request)
            check(response)
            found[node_id] = {image.offset: image.state_hash for image in response.recent_images}
        return found

    async def explain_compaction(self, topic: str, partition: int) -> dict[NodeId, ExplainCompactionResponse]:
        """Of each replica, by broker: what its cleaner does, or why it does nothing. An answer may hold an error.

        Raises RequestFailed: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = next((one for one in (await self.describe_topic(topic)).partitions if one.index == partition), None)
        if found is None:
            raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}")
        await self._link.refresh([])
        request = ExplainCompactionRequest(topic=topic, partition=partition)
        return {node: await self._link.call_node(node, request) for node in sorted(found.replicas)}

    async def describe_configs(
        self, name: str, *, resource_type: int = TOPIC_RESOURCE, names: Sequence[str] = ()
    ) -> ConfigDescription:
        """name: a topic; or a broker id (that broker is asked), also for the levels of its loggers; or "" for the
        defaults of all brokers."""
        resource = ConfigResource(resource_type=resource_type, resource_name=name, names=tuple(names))
        request = DescribeConfigsRequest(resources=(resource,))
        response: DescribeConfigsResponse
        if resource_type in OF_ONE_BROKER and name:
            await self._link.refresh([])
            response = await self._link.call_node(_broker_id(name), request)
        else:
            response = await self._link.call_any(request)
        check(response)
        (result,) = response.results
        _check_result(result, f"configs of {name!r}")
        return result

    async def describe_topics_configs(
        self, topics: Iterable[str], *, names: Sequence[str] = ()
    ) -> dict[str, ConfigDescription]:
        """The settings of many topics, TOPICS_AT_ONCE of them a request. names: only these settings; empty: all.

        A topic that does not exist is left out. Raises RequestFailed for any other error of a topic.
        """
        found: dict[str, ConfigDescription] = {}
        wanted = [ConfigResource(resource_type=TOPIC_RESOURCE, resource_name=one, names=tuple(names)) for one in topics]
        for first in range(0, len(wanted), TOPICS_AT_ONCE):
            resources = tuple(wanted[first : first + TOPICS_AT_ONCE])
            response: DescribeConfigsResponse = await self._link.call_any(DescribeConfigsRequest(resources=resources))
            check(response)
            for result in response.results:
                if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    _check_result(result, f"configs of {result.resource_name!r}")
                    found[result.resource_name] = result
        return found

    async def alter_configs(
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
        configs = tuple(alterable(key, change) for key, change in changes.items())
        resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
        of_broker = _broker_id(name) if resource_type in OF_ONE_BROKER and name else None
        if validate_only or of_broker is not None:
            if of_broker is not None:
                await self._link.refresh([])
            request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
            (result,) = (await RetriedChange(self._link, request, first=of_broker).carry_out()).results
        else:
            result = await self._settings.alter(resource)
        _check_result(result, f"configs of {name!r}")

    async def _send_settings(self, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        response: IncrementalAlterConfigsResponse = await RetriedChange(self._link, request).carry_out()
        return response

    @property
    def settings_requests(self) -> int:
        """How many requests have carried changes of settings so far."""
        return self._settings.requests

    async def create_partitions(
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
        topic = PartitionsOfTopic(
            name=name,
            count=count,
            assignments=tuple(NewPartition(broker_ids=tuple(brokers)) for brokers in assignment or ()),
        )
        request = CreatePartitionsRequest(
            topics=(topic,), timeout_ms=self.options.request_timeout_ms, validate_only=validate_only
        )
        (result,) = await permitted_change(self._link, request, retry_on_quota_violation=retry_on_quota_violation)
        _check_result(result, f"topic {name!r}")

    # --- the cluster, its brokers, its quorum, the levels of its features ---

    async def describe_cluster(
        self, *, include_fenced_brokers: bool = True, include_partition_counts: bool = False
    ) -> DescribeClusterResponse:
        request = DescribeClusterRequest(
            include_fenced_brokers=include_fenced_brokers, include_partition_counts=include_partition_counts
        )
        response: DescribeClusterResponse = await self._link.call_any(request)
        check(response)
        return response

    async def describe_broker_log_dirs(
        self, node_id: NodeId, timeout_ms: int | None = None
    ) -> tuple[LogDirDescription, ...]:
        """Of one broker that is not fenced. timeout_ms: None: request.timeout.ms. Raises RpcError, RequestFailed."""
        await self._link.refresh([])
        response: DescribeLogDirsResponse = await self._link.call_node(node_id, DescribeLogDirsRequest(), timeout_ms)
        check(response)
        return response.directories

    async def unregister_broker(self, broker_id: NodeId, broker_epoch: BrokerEpoch = -1) -> None:
        """Let the cluster forget a broker that is gone for good. A running one registers again.

        broker_epoch: of the registration that is meant; -1: whichever there is.
        Raises RequestFailed: BROKER_ID_NOT_REGISTERED; STALE_BROKER_EPOCH if it has registered since.
        """
        request = UnregisterBrokerRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        in_doubt = False  # an earlier try may have been carried out

        def doubt() -> None:
            nonlocal in_doubt
            in_doubt = True

        async def ask() -> None:
            response: UnregisterBrokerResponse = await self._link.call_any(
                request, self.options.request_timeout_ms, doubt
            )
            if response.error_code == ErrorCode.REQUEST_TIMED_OUT:
                doubt()
            if not (in_doubt and response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED):
                check(response)

        await self._link.until(ask, self.options.default_api_timeout_ms)

    async def describe_quorum(self, timeout_ms: int | None = None) -> DescribeQuorumResponse:
        """timeout_ms: None: default.api.timeout.ms."""
        patience_ms = timeout_ms or self.options.default_api_timeout_ms

        async def ask() -> DescribeQuorumResponse:
            response: DescribeQuorumResponse = await self._link.call_any(DescribeQuorumRequest(), patience_ms)
            check(response)
            return response

        found: DescribeQuorumResponse = await self._link.until(ask, patience_ms)
        return with_durations(found)

    async def add_voter(
        self, node_id: NodeId, directory_id: Uuid, endpoints: Sequence[Endpoint], timeout_ms: int
    ) -> None:
        """Make a controller a voter. endpoints: one of them with the name of the internal listener.

        timeout_ms: how long the leader may wait until the node has copied the log. Raises RequestFailed.
        """
        request = AddRaftVoterRequest(
            timeout_ms=timeout_ms, voter_id=node_id, voter_directory_id=directory_id, listeners=tuple(endpoints)
        )
        check(await self._link.call_any(request, timeout_ms + VOTER_MARGIN_MS))

    async def remove_voter(self, node_id: NodeId, directory_id: Uuid) -> None:
        """Raises RequestFailed."""
        request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
        check(await self._link.call_any(request, REMOVE_VOTER_MS))

    async def transfer_leadership(self, to_node_id: NodeId = NO_NODE) -> TransferLeadershipResponse:
        """Hand the leadership of the quorum over to this voter; NO_NODE: to the one that is ready first.

        The response names who leads then. Raises RequestFailed: VOTER_NOT_FOUND; REQUEST_TIMED_OUT if the voter had
        not caught up, and the old leader goes on; PREFERRED_LEADER_NOT_AVAILABLE if another voter was elected.
        """
        response: TransferLeadershipResponse = await self._link.call_any(
            TransferLeadershipRequest(to_node_id=to_node_id)
        )
        check(response)
        return response

    async def describe_features(self) -> DescribeFeaturesResponse:
        """The levels in force, and which levels each node supports."""
        response: DescribeFeaturesResponse = await self._link.call_any(DescribeFeaturesRequest())
        check(response)
        return response

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        """Carry out all updates or none. An update that was carried out already is no error, so a retry does no harm.

        Raises RequestFailed: INVALID_UPDATE_VERSION, INVALID_REQUEST.
        """
        request = UpdateFeaturesRequest(
            updates=tuple(updates), timeout_ms=self.options.request_timeout_ms, validate_only=validate_only
        )
        await RetriedChange(self._link, request).carry_out()

    # --- access rules ---

    async def create_acls(self, acls: Iterable[AclContent]) -> list[AclResult]:
        """One result per rule; each carries its error. A rule that is there already is no error.

        Raises RequestFailed: SECURITY_DISABLED where no authorizer is on.
        """
        return await create_acls(self._link, list(acls))

    async def describe_acls(
        self, wanted: DescribeAclsRequest = EVERY, *, node_id: NodeId | None = None
    ) -> list[AclContent]:
        """The rules that a filter matches, by type, name and pattern. node_id: as this broker has them; None: any one.

        Raises RequestFailed, as `create_acls`.
        """
        return await describe_acls(self._link, wanted, node_id)

    async def delete_acls(self, filters: Iterable[DescribeAclsRequest]) -> list[list[AclContent]]:
        """The rules that each filter matched, which are gone. Raises RequestFailed, as `create_acls`."""
        return await delete_acls(self._link, list(filters))

    # --- logs, their directories, their offsets ---

    async def import_topic(
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
        return await TopicImport(self._link, name, sources, on_progress).run(replication, configs or {})

    async def export_partition(
        self,
        topic: str,
        index: int,
        take: Take,
        *,
        end: int | None = None,
        topic_id: Uuid | None = None,
    ) -> Uuid:
        """Read a partition's batches as they are stored, up to its high watermark. Returns the topic's id.

        take: called with each part in order, on the client's loop; it may say for how many seconds the next one has to
        wait. end: exclusive, in place of the high watermark; it
        must not be above it. topic_id: of the topic that is meant; None: whichever has the name.
        Raises RequestFailed, Unavailable, ExportFailed.
        """
        return await PartitionExport(self._link, topic, index, take, end=end, topic_id=topic_id).run()

    async def take_cut(
        self, understand: Callable[[bytes], CutTopics], new_holder: Callable[[], bytes], timeout_ms: int = 60_000
    ) -> Cut:
        """Where each partition ends for a backup, and the metadata of that moment (decision 151).

        Commits of transactions wait meanwhile, for 10 s at most in each try. understand: the topics of a metadata
        snapshot. new_holder: gives 16 random bytes. Raises CutFailed, RequestFailed, Unavailable.
        """
        return await CutTaker(self._link, understand, new_holder).take(timeout_ms)

    async def pause_compaction(self, until_ms: int) -> None:
        """No broker begins to compact before this time, in ms since 1970 (decision 152)."""
        await self.alter_configs("", {PAUSED_UNTIL: str(until_ms)}, resource_type=BROKER_RESOURCE)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete all records before these offsets (-1: the high watermark). Returns each partition's first offset."""
        return await delete_records(self._link, before)

    async def describe_log_dirs(
        self, *, timeout_ms: int | None = None, silent: dict[NodeId, str] | None = None
    ) -> dict[NodeId, tuple[LogDirDescription, ...]]:
        """The log directories of every broker that is not fenced, by broker id.

        timeout_ms: of each broker; None: request.timeout.ms. silent: is given why a broker has not answered, and that
        one is left out; a dead broker is not fenced before its session ends, and one that has just started reads the
        metadata first. Without it, raises RpcError and RequestFailed.
        """
        found = await self._of_each_broker(DescribeLogDirsRequest(), timeout_ms, silent)
        return {node_id: response.directories for node_id, response in found.items()}

    async def alter_replica_log_dirs(self, wanted: Mapping[tuple[str, int, NodeId], str]) -> None:
        """Move replicas to other log directories of their brokers, or cancel their moves.

        wanted: the path by topic, partition and broker. Returns once the moves have begun; `describe_log_dirs` shows
        them. Raises RequestFailed for the first that was refused, after all were asked: LOG_DIR_NOT_FOUND,
        KAFKA_STORAGE_ERROR; REPLICA_NOT_AVAILABLE where it is not there yet, and will be made there.
        """
        await alter_replica_log_dirs(self._link, wanted)

    async def describe_quota_use(
        self, *, max_results: int = 20, timeout_ms: int | None = None, silent: dict[NodeId, str] | None = None
    ) -> dict[NodeId, DescribeQuotaUseResponse]:
        """Who uses most of its quota, at every broker that is not fenced, by broker id.

        max_results: of each broker, those that use most of it first. timeout_ms, silent: as of `describe_log_dirs`.
        """
        request = DescribeQuotaUseRequest(max_results=max_results)
        return await self._of_each_broker(request, timeout_ms, silent)

    async def describe_events(
        self,
        *,
        since_ms: int = 0,
        kinds: Sequence[str] = (),
        subject: str = "",
        limit: int = 1_000,
        timeout_ms: int | None = None,
        silent: dict[NodeId, str] | None = None,
    ) -> dict[NodeId, DescribeEventsResponse]:
        """What has happened at every broker that is not fenced, by broker id; each tells of its own ring.

        since_ms: milliseconds since 1970, inclusive. kinds: whole (broker.fenced) or their first words (broker); none:
        all. subject: partition/orders-4, or with a * at its end all that begin so; empty: all. limit: of each broker,
        its newest. timeout_ms, silent: as of `describe_log_dirs`. An Apache Kafka has no such call.
        """
        request = DescribeEventsRequest(since_ms=since_ms, kinds=tuple(kinds), subject=subject, limit=limit)
        return await self._of_each_broker(request, timeout_ms, silent)

    async def _of_each_broker(
        self, request: Any, timeout_ms: int | None, silent: dict[NodeId, str] | None
    ) -> dict[NodeId, Any]:
        """The responses of all that are not fenced. Raises as `describe_log_dirs`."""
        await self._link.refresh([])
        found: dict[NodeId, Any] = {}
        for node_id in sorted(self._link.cache.brokers):
            try:
                response = await self._link.call_node(node_id, request, timeout_ms)
                check(response)
            except (RequestFailed, RpcError) as error:
                if silent is None or (isinstance(error, RequestFailed) and not error.code.retriable):
                    raise
                silent[node_id] = str(error)
                continue
            found[node_id] = response
        return found

    async def bring_log_dir_online(self, node_id: NodeId, path: str) -> None:
        """Let a broker verify a log directory that was repaired; `describe_log_dirs` tells when it is online.

        Raises RequestFailed: LOG_DIR_NOT_FOUND, INVALID_REQUEST where it is not offline, KAFKA_STORAGE_ERROR where it
        stays so.
        """
        await self._link.refresh([])
        response: BringLogDirOnlineResponse = await self._link.call_node(
            node_id, BringLogDirOnlineRequest(path=path), LOG_DIR_TIMEOUT_MS
        )
        check(response)

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, FoundOffset]:
        """Offsets for timestamps in ms, or for LATEST, EARLIEST, MAX_TIMESTAMP of `quorumlog.client.offsets`."""
        return await resolve_offsets(self._link, wanted, isolation_level=isolation_level)

    async def list_offset_ranges(
        self,
        wanted: Iterable[TopicPartition],
        timeout_ms: int | None = None,
        *,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, tuple[FoundOffset, FoundOffset]]:
        """EARLIEST and LATEST of each partition; all leaders are asked at once. timeout_ms: None: the default."""
        return await resolve_ranges(self._link, wanted, timeout_ms, isolation_level=isolation_level)

    async def describe_ranges(
        self,
        wanted: Mapping[TopicPartition, RangeQuery],
        *,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        """How many bytes which offsets take, and where batches end: see `ranges.describe_ranges`."""
        return await describe_ranges(self._link, wanted, isolation_level=isolation_level)

    async def count_records(
        self, wanted: Mapping[TopicPartition, Offset], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, CountedRecords]:
        """How many records a reader would get from an offset on: see `counts.count_records`."""
        return await count_records(self._link, wanted, isolation_level=isolation_level)

    # --- which brokers keep a partition, and which of them leads it ---

    async def alter_partition_reassignments(
        self, wanted: Mapping[TopicPartition, Sequence[NodeId] | None]
    ) -> dict[TopicPartition, PartitionOutcome]:
        """Begin to move partitions to these replicas, the preferred leader first. None: end the move under way.

        Returns once they have begun: among others INVALID_REPLICA_ASSIGNMENT, UNKNOWN_TOPIC_OR_PARTITION,
        NO_REASSIGNMENT_IN_PROGRESS for a cancellation. Raises RequestFailed, Unavailable.
        """
        return await alter_partition_reassignments(self._link, wanted)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The reassignments under way; of these partitions only, unless None. Raises RequestFailed, Unavailable."""
        return await list_partition_reassignments(self._link, partitions)

    async def elect_leaders(
        self, election: ElectionType = ElectionType.PREFERRED, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionOutcome]:
        """Elect leaders of these partitions, or of every one that needs it if None.

        ELECTION_NOT_NEEDED: it is led so already. PREFERRED_LEADER_NOT_AVAILABLE: its first replica is not in sync.
        ELIGIBLE_LEADERS_NOT_AVAILABLE: none can lead. Raises RequestFailed, Unavailable.
        """
        return await elect_leaders(self._link, election, partitions)

    # --- users and quotas ---

    async def describe_user_scram_credentials(self, users: Iterable[str] | None = None) -> dict[str, Iterations]:
        """The SCRAM credentials of these users, or of all if None: mechanism and iterations. A user without one is left
        out. Raises RequestFailed, Unavailable.
        """
        return await describe_users(self._link, users)

    async def alter_user_scram_credentials(self, changes: Iterable[Change]) -> dict[Change, UserOutcome]:
        """Set passwords and delete credentials. What is sent of a password is as good as it is: use TLS.

        UNACCEPTABLE_CREDENTIAL: also on a connection that others can read. RESOURCE_NOT_FOUND: there is nothing to
        delete. Raises RequestFailed, Unavailable.
        """
        return await alter_users(self._link, changes, self._rng.randbytes)

    async def describe_client_quotas(
        self, wanted: Filter | None = None, *, strict: bool = False
    ) -> dict[Entity, dict[str, float]]:
        """The quotas of the entities that fit: values by key.

        wanted: by `user`, `client-id` or `ip`: a name; None: the default; ANY_NAME: both. None of them: every entity.
        strict: only entities with no other types. Raises RequestFailed, Unavailable.
        """
        return await describe_quotas(self._link, wanted or {}, strict)

    async def alter_client_quotas(
        self, changes: Iterable[QuotaChange], *, validate_only: bool = False
    ) -> dict[Entity, QuotaOutcome]:
        """Set and remove quotas. INVALID_REQUEST says what no quota can be.

        Raises BadQuota for an entity that there cannot be; RequestFailed, Unavailable.
        """
        return await alter_quotas(self._link, changes, validate_only)

    # --- consumer groups ---

    async def list_groups(self, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        """The groups of all brokers, by name. states, types: only these, in any case (Stable...; classic, consumer).

        Raises RequestFailed, RpcError if a broker has not answered in time: a list without its groups would be wrong.
        """
        await self._link.refresh([])
        request = ListGroupsRequest(states=tuple(states), types=tuple(types))

        async def of_broker(node_id: NodeId) -> tuple[ListedGroup, ...]:
            async def ask() -> tuple[ListedGroup, ...]:
                response: ListGroupsResponse = await self._link.call_node(node_id, request)
                check(response)
                return response.groups

            groups: tuple[ListedGroup, ...] = await self._link.until(ask, self._link.options.default_api_timeout_ms)
            return groups

        unique: dict[str, ListedGroup] = {}
        for node_id in sorted(self._link.cache.brokers):
            unique.update((group.group_id, group) for group in await of_broker(node_id))
        return sorted(unique.values(), key=lambda group: group.group_id)

    async def describe_group(self, group_id: str) -> GroupDescription:
        """Raises RequestFailed, but not for a group that does not exist."""
        coordinator = GroupCoordinator(self._link, group_id)
        classic = await described(coordinator, DescribeGroupsRequest(groups=(group_id,)), group_id)
        if classic.group_state != DEAD:
            return GroupDescription(await coordinator.find(), classic)
        try:
            modern = await described(coordinator, ConsumerGroupDescribeRequest(group_ids=(group_id,)), group_id)
        except RequestFailed as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:  # group.version is 0
                raise
            modern = None
        exists = modern is not None and modern.error_code == ErrorCode.NONE
        return GroupDescription(await coordinator.find(), modern if exists else classic)

    async def delete_group(self, group_id: str) -> None:
        """With all its offsets. Raises RequestFailed: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP while it has members."""
        coordinator = GroupCoordinator(self._link, group_id)
        response = await coordinator.call(DeleteGroupsRequest(groups=(group_id,)))
        check(response)
        (result,) = response.results
        done_before = coordinator.in_doubt and result.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if result.error_code != ErrorCode.NONE and not done_before:
            raise RequestFailed(ErrorCode(result.error_code), f"group {group_id!r}")

    async def group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, of all its partitions if None. A partition without an offset is not in it.

        require_stable: wait for open transactions that may still change an offset. Raises RequestFailed.
        """
        coordinator, limit_ms = GroupCoordinator(self._link, group_id), self._link.options.default_api_timeout_ms
        return await fetch_offsets(
            self._link, coordinator, group_id, partitions, limit_ms, require_stable=require_stable
        )

    async def group_lag(self, group_id: str, *, isolation_level: str = "read_uncommitted") -> GroupLag:
        """How far the group is behind: in records that it can read, in time, and as a distance of offsets.

        A Kafka tells the distance only. isolation_level: with read_committed, the end is the last stable offset;
        records of aborted transactions count for neither. A group that does not exist has the state Dead. Raises
        RequestFailed, RpcError, Unavailable.
        """
        description = await self.describe_group(group_id)
        committed = await self.group_offsets(group_id)
        return await group_lag(self._link, description, committed, isolation_level=isolation_level)

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ErrorCode]:
        """Commit these offsets for a group without members; it is made if there is none. The error of each.

        UNKNOWN_MEMBER_ID: the group has members. Raises RequestFailed for an error of all.
        """
        request = OffsetCommitRequest(group_id=group_id, topics=topics_to_commit(offsets))
        response: OffsetCommitResponse = await GroupCoordinator(self._link, group_id).call(request)
        check(response)
        return {
            (topic.name, one.index): ErrorCode(one.error_code) for topic in response.topics for one in topic.partitions
        }

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Forget these offsets. The error of each: GROUP_SUBSCRIBED_TO_TOPIC while a member reads it.

        Raises RequestFailed for an error of all: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=tuple(
                OffsetDeleteTopic(name=topic.name, partitions=topic.partitions) for topic in topics_to_fetch(partitions)
            ),
        )
        response: OffsetDeleteResponse = await GroupCoordinator(self._link, group_id).call(request)
        check(response)
        return {
            (topic.name, one.index): ErrorCode(one.error_code) for topic in response.topics for one in topic.partitions
        }

    # --- transactions ---

    async def list_transactions(
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
        await self._link.refresh([])
        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter_ms=duration_ms,
            transactional_id_pattern=pattern or None,
        )

        async def of_broker(node_id: NodeId) -> tuple[ListedTransaction, ...]:
            async def ask() -> ListTransactionsResponse:
                response: ListTransactionsResponse = await self._link.call_node(node_id, request)
                check(response)
                return response

            response: ListTransactionsResponse = await self._link.until(ask, self._link.options.default_api_timeout_ms)
            if response.unknown_state_filters:
                unknown = ", ".join(response.unknown_state_filters)
                raise RequestFailed(ErrorCode.INVALID_REQUEST, f"no transaction is ever in the state {unknown}")
            return response.transactions

        found: dict[str, TransactionListing] = {}
        for node_id in sorted(self._link.cache.brokers):
            found.update((one.transactional_id, TransactionListing(node_id, one)) for one in await of_broker(node_id))
        return [found[name] for name in sorted(found)]

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """Raises RequestFailed: TRANSACTIONAL_ID_NOT_FOUND."""
        coordinator = TransactionCoordinator(self._link, transactional_id)
        response: DescribeTransactionsResponse = await coordinator.call(
            DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        )
        check(response)
        (found,) = response.transactions
        if found.error_code != ErrorCode.NONE:
            raise RequestFailed(ErrorCode(found.error_code), f"transactional id {transactional_id!r}")
        return TransactionDescription(await coordinator.find(), found)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: NodeId | None = None
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        """What each partition's leader, or the replica of this broker, knows of producers.

        Raises RequestFailed: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (no replica there).
        """
        wanted = list(partitions)
        found: dict[TopicPartition, tuple[ActiveProducer, ...]] = {}

        async def ask() -> None:
            missing = [key for key in wanted if key not in found]
            leaders = await by_leader(self._link, missing)
            for node_id, keys in leaders.items() if broker_id is None else ((broker_id, missing),):
                request = DescribeProducersRequest(topics=transaction_topics(keys))
                response: DescribeProducersResponse = await self._link.call_node(node_id, request)
                check(response)
                for topic in response.topics:
                    for part in topic.partitions:
                        name = f"{topic.name}-{part.index}"
                        if part.error_code != ErrorCode.NONE:
                            text = part.error_message or "the broker gave no reason"
                            raise RequestFailed(ErrorCode(part.error_code), f"producers of {name}: {text}")
                        found[topic.name, part.index] = part.active_producers

        if broker_id is not None:
            await ask()  # a replica does not come there by waiting
        else:
            await self._link.until(ask, self._link.options.default_api_timeout_ms)
        return found

    async def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = -1
    ) -> None:
        """Write an abort marker to a partition whose transaction no coordinator ends any more. Nothing else is touched.

        coordinator_epoch: as DescribeProducers says; -1: it knows none. Raises RequestFailed: TRANSACTION_COORDINATOR_
        FENCED, INVALID_PRODUCER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        marker = TransactionMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=False,
            topics=transaction_topics([partition]),
            coordinator_epoch=coordinator_epoch if coordinator_epoch >= 0 else OF_UNKNOWN_COORDINATOR,
        )

        async def ask() -> None:
            (node_id,) = await by_leader(self._link, [partition])
            response: WriteTxnMarkersResponse = await self._link.call_node(
                node_id, WriteTxnMarkersRequest(markers=(marker,))
            )
            check(response)
            for written in response.markers:
                for topic in written.topics:
                    for part in topic.partitions:
                        if part.error_code != ErrorCode.NONE:
                            raise RequestFailed(ErrorCode(part.error_code), f"marker for {topic.name}-{part.index}")

        await self._link.until(ask, self._link.options.default_api_timeout_ms)

    async def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Take the id from its producer, which aborts its transaction. Returns the new producer id and epoch.

        The id is made if it does not exist. Raises RequestFailed.
        """
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS)

        async def ask() -> InitProducerIdResponse:
            response: InitProducerIdResponse = await coordinator.call(request)
            check(response)
            return response

        coordinator = TransactionCoordinator(self._link, transactional_id)
        done: InitProducerIdResponse = await self._link.until(ask, self._link.options.default_api_timeout_ms)
        return done.producer_id, done.producer_epoch

    async def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], max_timeout_ms: int, *, now_ms: int, broker_id: NodeId | None = None
    ) -> list[HangingTransaction]:
        """Transactions that no coordinator will end: open for longer than any may be, and not known to one.

        max_timeout_ms: transaction.max.timeout.ms of the brokers. now_ms: ms since 1970.
        """
        producers = await self.describe_producers(partitions, broker_id=broker_id)
        candidates = open_for_long(producers, now_ms - max_timeout_ms)
        ids = await self._ids_of(candidates)
        known: dict[str, DescribedTransaction] = {}
        for name in sorted(set(ids.values())):
            try:
                known[name] = (await self.describe_transaction(name)).transaction
            except RequestFailed as error:
                if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
        return hanging(candidates, ids, known)

    async def _ids_of(self, candidates: Sequence[OpenTransaction]) -> dict[int, str]:
        """Transactional ids by producer id."""
        producer_ids = sorted({one.producer.producer_id for one in candidates})
        if not producer_ids:
            return {}
        listed = await self.list_transactions(producer_ids=producer_ids)
        return {one.transaction.producer_id: one.transaction.transactional_id for one in listed}

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """By id; those that no coordinator knows are absent. Raises RequestFailed, RpcError, Unavailable."""
        return await describe_transactions(self._link, transactional_ids)

    async def end_transactions(self, producers: Sequence[OpenProducer], *, commit: bool) -> dict[str, ErrorCode]:
        """By id, what its coordinator said. Each is asked once; a retriable code also stands for no answer: it may have
        been carried out. Raises RequestFailed, RpcError, Unavailable if nobody was asked."""
        return await end_transactions(self._link, producers, commit=commit)

    async def transaction_outcome(self, producer_id: int, place: TransactionPlace) -> Outcome:
        """How the only transaction that this producer ever had has ended, as this partition's log tells.

        Once nothing is open up to its last offset, the leader's list of aborted transactions tells. Before that, or
        where its records are gone, the producer's marker behind them does. Raises RequestFailed, RpcError, Unavailable.
        """
        return await transaction_outcome(self._link, producer_id, place)

    # --- joint groups (decision 112); each call raises NoJointTransactions where brokers have none ---

    async def list_joint_groups(self) -> list[ListedJointGroup]:
        """See `joint_groups`."""
        return await joint_groups(self._link)

    async def abort_joint_batch(self, group_id: str, location: str, sequence: int) -> AbortJointResponse:
        """Abort what is open of a batch, whatever its runs. Nothing is done to one that is decided. Raises
        RequestFailed."""
        response: AbortJointResponse = await of_joint_group(
            self._link, group_id, AbortJointRequest(group_id=group_id, location=location, sequence=sequence)
        )
        return response

    async def forget_joint_group(self, group_id: str) -> None:
        """Its next writer begins anew. Raises RequestFailed: JOINT_GROUP_OPEN, GROUP_ID_NOT_FOUND."""
        await of_joint_group(self._link, group_id, ForgetJointRequest(group_id=group_id))


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication,
        assignments=tuple(
            ReplicaAssignment(partition=index, broker_ids=tuple(brokers))
            for index, brokers in enumerate(topic.assignment or ())
        ),
        configs=tuple(ConfigEntry(name=key, value=value) for key, value in (topic.configs or {}).items()),
    )


def _broker_id(name: str) -> NodeId:
    if not (name.isascii() and name.isdigit()):
        raise RequestFailed(ErrorCode.INVALID_REQUEST, f"{name!r} is not a broker id")
    return int(name)


def _check_result(result: Any, what: str) -> None:
    if result.error_code != ErrorCode.NONE:
        raise RequestFailed(ErrorCode(result.error_code), result.error_message or what)
