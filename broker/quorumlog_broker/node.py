"""One broker, put together: the data plane, the lifecycle towards the controller, and the handlers of its APIs.

It knows the quorum only as a subscription to committed metadata; the composition root (quorumlog_server) owns
listeners, directories and the quorum itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.events.ring import EventRing
from quorumlog.ids import BrokerEpoch, NodeId, Offset, Uuid
from quorumlog.messages.cluster import DescribedConfig
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.controller import DamagedPartition, RegisterBrokerRequest
from quorumlog.messages.metadata_records import RegisterBrokerRecord
from quorumlog.nursery import Nursery
from quorumlog.offsets_topic import OffsetsTopicConfig
from quorumlog.rpc.transport import Context, Handler, Transport
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.security.required.guard import Guard, Rights
from quorumlog.security.required.table import check_rows
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.groups import GroupConfig
from quorumlog.settings.lifecycle import LifecycleConfig
from quorumlog.settings.moves import MovesConfig
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.settings.requests import HandlerLimits
from quorumlog.settings.transactions import TransactionConfig, VerificationConfig
from quorumlog.slices import Sliced
from quorumlog.transactions_topic import TransactionsTopicConfig
from quorumlog.turn import Turn
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.api.handlers.count_records import answer_count
from quorumlog_broker.api.listener_files import ListenerFiles, NoFiles
from quorumlog_broker.api.producer_ids import ProducerIds
from quorumlog_broker.api.quotas import BrokerQuotas
from quorumlog_broker.api.recently_fenced import RecentlyFenced
from quorumlog_broker.api.services import Services
from quorumlog_broker.api.suspected_leaders import LeaderProber, SuspectedLeaders
from quorumlog_broker.cleaning.runner import Runner
from quorumlog_broker.coordinator.runtime.group_coordinators import GroupCoordinators
from quorumlog_broker.coordinator.runtime.group_lags import GroupLags
from quorumlog_broker.coordinator.runtime.transactions import Transactions
from quorumlog_broker.data_plane import DataPlane
from quorumlog_broker.directory_return import DirectoryReturn, Reopen
from quorumlog_broker.fetch.chunk_stream import ChunkStreams
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.lifecycle.controller_channel import ControllerChannel, OwnController
from quorumlog_broker.lifecycle.directory_assigner import DirectoryAssigner
from quorumlog_broker.lifecycle.lifecycle import Lifecycle, LifecycleState
from quorumlog_broker.lifecycle.shell import LifecycleShell
from quorumlog_broker.logdirs.log_directory import LogDirectory, offline_ids
from quorumlog_broker.partition.events import HighWatermarkMoved
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.frame import has_field
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.known_topics import KnownTopics
from quorumlog_quorum.metadata.loader import MetadataLoader


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """client_listener: the listener whose addresses clients get if the listener of their request does not decide it.
    topic_defaults: set for all topics by this broker's file. settings: this broker's own, for DescribeConfigs.
    access_rules: an authorizer is on, so rules may be made.
    previous_broker_epoch: the epoch at the last stop, if every directory was stopped cleanly, else -1.
    """

    client_listener: str
    internal_listener: str
    replication_listener: str = ""
    rack: str | None = None
    previous_broker_epoch: BrokerEpoch = -1
    auto_create_topics: bool = True
    topic_defaults: Mapping[str, str]
    settings: tuple[DescribedConfig, ...] = ()
    lifecycle: LifecycleConfig = field(default_factory=LifecycleConfig)
    replication: ReplicationConfig = field(default_factory=ReplicationConfig)
    limits: HandlerLimits = field(default_factory=HandlerLimits)
    cleaner: CleanerConfig = field(default_factory=CleanerConfig)
    moves: MovesConfig = field(default_factory=MovesConfig)
    groups: GroupConfig = field(default_factory=GroupConfig)
    offsets_topic: OffsetsTopicConfig = field(default_factory=OffsetsTopicConfig)
    transactions: TransactionConfig = field(default_factory=TransactionConfig)
    transactions_topic: TransactionsTopicConfig = field(default_factory=TransactionsTopicConfig)
    verification: VerificationConfig = field(default_factory=VerificationConfig)
    access_rules: bool = False


class Broker:
    """`handle` may be called at once: until the first image, clients get errors that they retry."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        cluster_id: str,
        incarnation_id: Uuid,
        config: BrokerConfig,
        directories: Sequence[LogDirectory],
        subscription: MetadataLoader,
        transport: Transport,
        clock: Clock,
        rng: Callable[[str], Random],
        nursery: Nursery,
        on_fatal: Callable[[str], None],
        on_state: Callable[[LifecycleState], None] = lambda _state: None,
        turn: Turn | None = None,
        own_controller: OwnController | None = None,
        supported: tuple[FeatureRange, ...] = SUPPORTED,
        kraft_version: Callable[[], int] = int,
        make_cleaner: Callable[[], Runner] | None = None,
        reopen: Reopen | None = None,
        rights: Rights | None = None,
        quotas: NodeQuotas | None = None,
        listener_files: ListenerFiles | None = None,
        events: EventRing | None = None,
    ) -> None:
        """rng: gives the source of randomness of each concern, by name. on_fatal: called with the reason why the
        process has to end. turn: of the node; None: one of its own. own_controller: None: this node has none.
        supported: the levels of features that this software supports. kraft_version: the level in force.
        make_cleaner: see `DataPlane`. reopen: see `DirectoryReturn`; None: no directory comes back before a restart.
        listener_files: certificates that clients may have read again; None: there are none. rights: what clients may
        do; None: everything. quotas: of the node, which keeps them up to date; None: there are none. events: of the
        node; None: none is kept.
        Raises MissingRow: a handler has no row in the table of rights.
        """
        check_rows(HANDLERS)
        turn = turn or Turn()
        self.events = events or EventRing(node_id, clock.wall_ms, 0)
        self._node_id, self._cluster_id, self._incarnation_id = node_id, cluster_id, incarnation_id
        self._config = config
        self._supported, self._kraft_version = supported, kraft_version
        self._quotas = quotas or NodeQuotas()
        self._directories = list(directories)  # a directory that comes back takes the place of the earlier one
        self._subscription = subscription
        self._nursery, self._on_fatal, self._clock = nursery, on_fatal, clock
        self._endpoints: tuple[Endpoint, ...] = ()
        self._applied_offset: Offset = 0  # exclusive end of the metadata that the replicas follow
        self._appends_seen = 0  # when `_at_rest` was asked last
        self.channel = ControllerChannel(
            subscription=subscription,
            transport=transport,
            clock=clock,
            rng=rng("controller channel"),
            nursery=nursery,
            client_id=f"broker-{node_id}",
            own=own_controller,
        )
        self._register(on_state)
        suspected_leaders = SuspectedLeaders()
        prober = self._leader_prober(suspected_leaders, transport)
        self._hold_records(transport, rng, turn, prober, make_cleaner)
        self._look_after_directories(rng, reopen or _no_return)
        self._coordinate(transport, rng, turn)
        self.data_plane.upcoming.newest = lambda: subscription.image
        self.chunk_streams = ChunkStreams()
        self._rights = rights
        self._listener_files = listener_files or NoFiles()
        self._services = self._make_services(suspected_leaders)
        self.handle_client = self._guarded()

    def _register(self, on_state: Callable[[LifecycleState], None]) -> None:
        """With the controller, and stay so."""
        self.lifecycle = LifecycleShell(
            core=Lifecycle(
                node_id=self._node_id,
                incarnation_id=self._incarnation_id,
                config=self._config.lifecycle,
                offline_directories=partial(offline_ids, self._directories),
                at_rest=self._at_rest,
                deletions_done_before=self._deletions_done_before,
                cordoned_directories=lambda: tuple(sorted(self.data_plane.cordoned.ids())),
            ),
            channel=self.channel,
            clock=self._clock,
            nursery=self._nursery,
            registration=self._registration,
            on_registered=self._on_registered,
            on_state=on_state,
            on_fatal=self._on_fatal,
        )

    def _leader_prober(self, suspected_leaders: SuspectedLeaders, transport: Transport) -> LeaderProber:
        subscription = self._subscription
        return LeaderProber(
            suspected_leaders,
            image=lambda: subscription.image,
            internal_listener=self._config.internal_listener,
            transport=transport,
            clock=self._clock,
            nursery=self._nursery,
        )

    def _hold_records(
        self,
        transport: Transport,
        rng: Callable[[str], Random],
        turn: Turn,
        prober: LeaderProber,
        make_cleaner: Callable[[], Runner] | None,
    ) -> None:
        config = self._config
        self.data_plane = DataPlane(
            node_id=self._node_id,
            incarnation_id=self._incarnation_id,
            directories=self._directories,
            clock=self._clock,
            rng=rng("replicas"),
            nursery=self._nursery,
            transport=transport,
            controller=self.channel,
            broker_epoch=self._broker_epoch,
            config=config.replication,
            fetch_sessions=FetchSessions(
                rng("fetch sessions"),
                slots=config.limits.fetch_session_slots,
                max_partitions=config.limits.fetch_session_partitions,
            ),
            on_directory_failed=self._on_directory_failed,
            on_assignments_changed=self._wake_assigner,
            on_opened=self._on_readiness_changed,
            on_damage=self._on_damage_changed,
            on_leader_lost=prober.on_lost,
            on_cordoned=self.lifecycle.on_directories_changed,
            turn=turn,
            cleaner=config.cleaner,
            make_cleaner=make_cleaner,
            moves=config.moves,
        )
        self.data_plane.told = self.events.note

    def _look_after_directories(self, rng: Callable[[str], Random], reopen: Reopen) -> None:
        self._assigner = DirectoryAssigner(
            node_id=self._node_id,
            pending=self.data_plane.placements.pending_assignments,
            broker_epoch=self._broker_epoch,
            channel=self.channel,
            rng=rng("directory assigner"),
        )
        self._directory_return = DirectoryReturn(
            self._node_id,
            self._directories,
            self.data_plane.returns,
            self.lifecycle,
            self._subscription,
            self._nursery,
            reopen,
            self._on_directory_back,
        )

    def _on_directory_back(self, directory: LogDirectory) -> None:
        self.events.note("directory.online", f"directory/{directory.path}", "verified; its replicas are served again")
        self.data_plane.directory_returned(directory)

    def _coordinate(self, transport: Transport, rng: Callable[[str], Random], turn: Turn) -> None:
        """Groups and transactions."""
        node_id, config, subscription = self._node_id, self._config, self._subscription
        clock, nursery = self._clock, self._nursery
        own_appends = OwnAppends(self.data_plane.produce_path.advance)
        self.groups = GroupCoordinators(
            node_id=node_id,
            config=config.groups,
            image=lambda: subscription.image,
            appends=own_appends,
            clock=clock,
            turn=turn,
            nursery=nursery,
            rng=rng("group coordinators"),
            in_service=lambda: self.lifecycle.is_in_service,
        )
        self._producer_ids = ProducerIds(node_id, self.channel, self._broker_epoch)
        self.transactions = Transactions(
            node_id=node_id,
            config=config.transactions,
            verification=config.verification,
            image=lambda: subscription.image,
            internal_listener=config.internal_listener,
            transport=transport,
            produce_path=self.data_plane.produce_path,
            own_appends=own_appends,
            groups=self.groups,
            new_producer_id=self._new_producer_id,
            clock=clock,
            turn=turn,
            nursery=nursery,
        )
        self.group_lags = GroupLags(
            node_id,
            self.groups,
            self.transactions.peers,
            lambda request: answer_count(self._services, request),
            image=lambda: subscription.image,
            clock=clock,
            nursery=nursery,
        )
        for coordinators in (self.groups, self.transactions.coordinators):
            coordinators.told = self.events.note
            self.data_plane.leadership_listeners.add(coordinators)
            self.data_plane.stepper.on(HighWatermarkMoved, coordinators.high_watermark_moved)

    def _make_services(self, suspected_leaders: SuspectedLeaders) -> Services:
        config, data_plane = self._config, self.data_plane
        return Services(
            node_id=self._node_id,
            cluster_id=self._cluster_id,
            subscription=self._subscription,
            traffic=data_plane.registry.traffic,
            produce_path=data_plane.produce_path,
            fetch_path=data_plane.fetch_path,
            delete_path=data_plane.delete_path,
            import_path=data_plane.import_path,
            offset_queries=data_plane.offset_queries,
            upcoming=data_plane.upcoming,
            directory_report=data_plane.directory_report,
            producer_report=data_plane.producer_report,
            log_ends=data_plane.log_ends,
            compactions=data_plane.compactions,
            bring_online=self._directory_return.begin,
            moves=data_plane.moves,
            controller=self.channel,
            clock=self._clock,
            fetch_sessions=data_plane.fetch_sessions,
            producer_ids=self._producer_ids,
            groups=self.groups,
            transactions=self.transactions,
            offsets_topic=config.offsets_topic,
            transactions_topic=config.transactions_topic,
            consumer_groups=config.groups.consumer,
            auto_create_topics=config.auto_create_topics,
            client_listener=config.client_listener,
            internal_listener=config.internal_listener,
            replication_listener=config.replication_listener,
            suspected_leaders=suspected_leaders,
            recently_fenced=RecentlyFenced(),
            chunk_streams=self.chunk_streams,
            quotas=BrokerQuotas(self._quotas, self._clock),
            topic_defaults=config.topic_defaults,
            settings=config.settings,
            supported=self._supported,
            kraft_version=self._kraft_version,
            limits=config.limits,
            listener_files=self._listener_files,
            events=self.events,
            rules=None if self._rights is None else self._rights.rules,
            access_rules=config.access_rules,
        )

    @property
    def serving(self) -> bool:
        """Registered, caught up and unfenced."""
        return self.lifecycle.state is LifecycleState.RUNNING and not self.lifecycle.fenced

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Read what the directories hold, follow the metadata, register. endpoints: as others should reach them."""
        self._endpoints = tuple(endpoints)
        await self.data_plane.start()
        self._nursery.start(self._assigner.run(), "directory assigner")
        self._subscription.on_controller_change(self._on_controller_change)
        self._subscription.subscribe(self._on_metadata)
        self.lifecycle.start()

    async def stop(self, controlled: bool = True) -> frozenset[str]:
        """Close every log; if `controlled`, hand leadership over first.

        Returns the paths of the log directories that were left in order, and may be marked so.
        """
        await self.lifecycle.stop(controlled)
        in_order = await self.data_plane.close()
        self.group_lags.close()
        await self.transactions.close()
        await self.channel.close()
        return in_order

    def handle(self, context: Context, request: Any) -> Awaitable[Any]:
        """Answer one request, without a look at rights; None: no response is sent. Raises ApiError."""
        handler = HANDLERS.get(type(request))
        if handler is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"brokers do not serve {type(request).__name__}")
        return handler(self._services, context, request)

    def _guarded(self) -> Handler:
        """`handle` for clients, who may do only what the access rules let them; without rules the same."""
        if self._rights is None:
            return self.handle
        return Guard(self.handle, self._rights, KnownTopics(self._subscription, self._config.auto_create_topics))

    def _new_producer_id(self) -> int | None:
        found = self._producer_ids.take_now()
        if found is None:
            self._nursery.start(self._get_producer_ids(), "producer ids")
        return found

    async def _get_producer_ids(self) -> None:
        with suppress(ApiError):  # whoever needs one asks again
            await self._producer_ids.until_some()

    def _at_rest(self) -> bool:
        """Nothing was written here since this was asked last."""
        seen, self._appends_seen = self._appends_seen, self.data_plane.appends
        return seen == self._appends_seen

    def _deletions_done_before(self) -> Offset:
        return self.data_plane.placements.deletions_done_before

    def _broker_epoch(self) -> BrokerEpoch:
        return self.lifecycle.broker_epoch

    def _on_metadata(self, delta: Delta, image: Image) -> Sliced[None]:
        self._services.recently_fenced.on_image(delta, image, self._clock.now_ms())
        self._services.recent_images.on_image(image)
        yield from self.data_plane.placements.apply(delta, image)
        self._applied_offset = image.offset
        self.groups.on_metadata(delta, image)
        if delta.partition_changes or not delta.changed_configs:  # settings alone move no replica
            self._assigner.wake()
        self.lifecycle.on_metadata(image.offset, ready=self._may_be_unfenced)

    @property
    def _may_be_unfenced(self) -> bool:
        """A leader that still recovers its logs makes its clients wait; one that lacks records must not be elected."""
        return self.data_plane.logs_to_open.done and not self.data_plane.recovery_findings.unreported

    def _on_readiness_changed(self) -> None:
        self.lifecycle.on_metadata(self._applied_offset, ready=self._may_be_unfenced)

    def _on_damage_changed(self) -> None:
        """While there is unreported damage, the broker is not ready; the controller learns of it by a registration."""
        self._on_readiness_changed()
        if self.data_plane.recovery_findings.unreported:
            self.lifecycle.register_again()

    def _on_registered(self, request: RegisterBrokerRequest) -> None:
        self.data_plane.recovery_findings.told((one.topic_id, one.index) for one in request.damaged_partitions)

    def _on_controller_change(self) -> None:
        """Where the log has no place for this broker's ranges, the new active controller learns them from a
        registration: it must know them to raise the level (quorumlog_quorum/controller/engine/controller_state.py)."""
        image = self._subscription.image
        known = image.offset > 0 and self._subscription.active_controller is not None
        if known and not has_field(RegisterBrokerRecord, "features", image.metadata_version):
            self.lifecycle.register_again()

    def _wake_assigner(self) -> None:
        self._assigner.wake()

    def _on_directory_failed(self, _directory_id: Uuid, error: Exception) -> None:
        if not any(entry.life.is_online for entry in self._directories):
            self._on_fatal(f"every log directory is offline; the last one failed: {error}")
        else:
            self.lifecycle.on_directories_changed()

    def _registration(self) -> RegisterBrokerRequest:
        damaged = self.data_plane.recovery_findings.unreported
        online = (entry.directory_id for entry in self._directories if entry.life.is_online)
        return RegisterBrokerRequest(
            broker_id=self._node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            endpoints=self._endpoints,
            log_directories=tuple(sorted(online)),
            rack=self._config.rack,
            previous_broker_epoch=self._config.previous_broker_epoch,
            features=self._supported,
            damaged_partitions=tuple(DamagedPartition(topic_id=key[0], index=key[1]) for key in damaged),
            cordoned_directories=tuple(sorted(self.data_plane.cordoned.ids())),
        )


async def _no_return(path: str) -> LogDirectory:
    raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"{path} can be brought back by a restart of the node only")
