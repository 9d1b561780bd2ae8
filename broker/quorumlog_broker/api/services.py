"""What the handlers of a broker's APIs use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import DescribedConfig
from quorumlog.messages.common import FeatureRange
from quorumlog.offsets_topic import OffsetsTopicConfig
from quorumlog.rpc.transport import Context
from quorumlog.security.authorizer import Authorizer, Operation, ResourceType
from quorumlog.settings.groups import ConsumerGroupConfig
from quorumlog.settings.requests import HandlerLimits
from quorumlog.transactions_topic import TransactionsTopicConfig
from quorumlog_broker.api.listener_files import ListenerFiles, NoFiles
from quorumlog_broker.api.on_behalf import OnBehalf
from quorumlog_broker.api.producer_ids import ProducerIds
from quorumlog_broker.api.quotas import BrokerQuotas
from quorumlog_broker.api.recent_images import RecentImages
from quorumlog_broker.api.recently_fenced import RecentlyFenced
from quorumlog_broker.api.suspected_leaders import SuspectedLeaders
from quorumlog_broker.cleaning.explained import ExplainedCompactions
from quorumlog_broker.coordinator.runtime.group_coordinators import GroupCoordinators
from quorumlog_broker.coordinator.runtime.transactions import Transactions
from quorumlog_broker.coordinator.turn import Sees, sees_all
from quorumlog_broker.fetch.chunk_stream import ChunkStreams
from quorumlog_broker.fetch.fetch_path import FetchPath
from quorumlog_broker.fetch.offset_queries import OffsetQueries
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.lifecycle.controller_channel import ControllerCalls, ControllerChannel
from quorumlog_broker.moves.manager import Moves
from quorumlog_broker.produce.delete_records import DeletePath
from quorumlog_broker.produce.import_path import ImportPath
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.replicas.directory_report import DirectoryReport
from quorumlog_broker.replicas.log_ends import LogEnds
from quorumlog_broker.replicas.producer_report import ProducerReport
from quorumlog_broker.replicas.traffic import Traffic
from quorumlog_broker.replicas.upcoming import UpcomingLeaderships
from quorumlog_quorum.metadata.features import CHANGED_BY_LEVEL, SUPPORTED
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.loader import MetadataLoader


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """client_listener: the listener whose addresses are given to a request that came on the internal listener.
    topic_defaults: what this broker's file sets for all topics, by the topics' key names.
    access_rules: an authorizer is on, so rules may be made.
    bring_online: `DirectoryReturn.begin`. settings: this broker's own configuration, for DescribeConfigs.
    """

    node_id: NodeId
    cluster_id: str
    subscription: MetadataLoader
    traffic: Traffic
    produce_path: ProducePath
    fetch_path: FetchPath
    delete_path: DeletePath
    import_path: ImportPath
    offset_queries: OffsetQueries
    upcoming: UpcomingLeaderships
    directory_report: DirectoryReport
    producer_report: ProducerReport
    log_ends: LogEnds
    compactions: ExplainedCompactions
    bring_online: Callable[[str], Awaitable[None]]
    moves: Moves
    controller: ControllerChannel
    clock: Clock
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    groups: GroupCoordinators
    transactions: Transactions
    auto_create_topics: bool
    client_listener: str
    internal_listener: str
    topic_defaults: Mapping[str, str]
    settings: tuple[DescribedConfig, ...]
    limits: HandlerLimits = field(default_factory=HandlerLimits)
    offsets_topic: OffsetsTopicConfig = field(default_factory=OffsetsTopicConfig)
    transactions_topic: TransactionsTopicConfig = field(default_factory=TransactionsTopicConfig)
    consumer_groups: ConsumerGroupConfig = field(default_factory=ConsumerGroupConfig)
    supported: tuple[FeatureRange, ...] = SUPPORTED  # the levels of features that this software supports
    kraft_version: Callable[[], int] = int  # the level in force, as this node's quorum driver knows it
    access_rules: bool = False
    replication_listener: str = ""  # another internal listener; empty: none
    suspected_leaders: SuspectedLeaders = field(default_factory=SuspectedLeaders)
    recently_fenced: RecentlyFenced = field(default_factory=RecentlyFenced)
    recent_images: RecentImages = field(default_factory=RecentImages)
    chunk_streams: ChunkStreams = field(default_factory=ChunkStreams)
    quotas: BrokerQuotas
    listener_files: ListenerFiles = field(default_factory=NoFiles)
    rules: Authorizer | None = None  # the access rules in force; None: everybody may do everything

    def controller_for(self, client: Context) -> ControllerCalls:
        """For what a client asks of the controller. It is told for whom that is where access rules are in force, or
        quotas of what it makes and deletes, and where the metadata says who has changed it."""
        is_named = self.subscription.image.metadata_version >= CHANGED_BY_LEVEL
        is_named = is_named or self.rules is not None or self.quotas.limits_mutations
        return OnBehalf(self.controller, client) if is_named else self.controller

    def seen_by(self, client: Context) -> Sees:
        """The topics that a client may describe."""
        rules, who, host = self.rules, client.principal, client.client_host
        if rules is None:
            return sees_all
        return lambda name: rules.authorize(who, host, Operation.DESCRIBE, ResourceType.TOPIC, name)

    def caught_up_image(self) -> Image:
        """The newest metadata. Raises ApiError(LEADER_NOT_AVAILABLE), which clients retry, before the first image."""
        return self._read_image(ErrorCode.LEADER_NOT_AVAILABLE)

    def coordinators_image(self) -> Image:
        """As `caught_up_image`, with COORDINATOR_LOAD_IN_PROGRESS: clients of coordinators retry that, and take
        LEADER_NOT_AVAILABLE for the end."""
        return self._read_image(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _read_image(self, error: ErrorCode) -> Image:
        image = self.subscription.image
        if image.offset <= 0:
            raise ApiError(error, f"broker {self.node_id} is still reading the metadata log")
        return image
