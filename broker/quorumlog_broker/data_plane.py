"""The rooms that hold and move partitions' records, put together: built, joined, started, and closed in order.

There is no logic here and nothing is passed through: handlers, lifecycle and metrics use the rooms themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random

from quorumlog.clock import Clock
from quorumlog.configs.throttle import MOVE_RATE
from quorumlog.ids import BrokerEpoch, NodeId, Uuid
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Transport
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.moves import MovesConfig
from quorumlog.settings.replicas import RACK_AWARE_SELECTOR, ReplicationConfig
from quorumlog.turn import Turn
from quorumlog_broker.cleaning.explained import ExplainedCompactions
from quorumlog_broker.cleaning.live_config import LiveConfig
from quorumlog_broker.cleaning.manager import CleanerManager
from quorumlog_broker.cleaning.runner import Runner
from quorumlog_broker.delayed.operations import DelayedOperations
from quorumlog_broker.fetch.fetch_path import FetchPath
from quorumlog_broker.fetch.near_replicas import NearReplicas
from quorumlog_broker.fetch.offset_queries import OffsetQueries
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.lifecycle.controller_channel import ControllerCalls
from quorumlog_broker.logdirs.cordoned import LiveCordoned
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.logdirs.space_checks import check_free_space_for_ever
from quorumlog_broker.moves.manager import Moves
from quorumlog_broker.partition.events import (
    Follow,
    HighWatermarkMoved,
    LeaderElected,
    LeadershipLost,
    LowWatermarkMoved,
    ProposeIsr,
    TakeLeadership,
    WentOffline,
)
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.produce.delete_records import DeletePath
from quorumlog_broker.produce.import_path import ImportPath
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.produce.producer_expiry import expire_producers_for_ever
from quorumlog_broker.replicas.broker_incarnation import BrokerIncarnation
from quorumlog_broker.replicas.checkpoints import checkpoint_for_ever
from quorumlog_broker.replicas.directory_report import DirectoryReport
from quorumlog_broker.replicas.directory_returns import DirectoryReturns
from quorumlog_broker.replicas.leadership_listeners import LeadershipListeners
from quorumlog_broker.replicas.leaderships import Leaderships
from quorumlog_broker.replicas.log_ends import LogEnds
from quorumlog_broker.replicas.logs_to_open import LogsToOpen
from quorumlog_broker.replicas.opening_progress import OpeningProgress, report_until_open
from quorumlog_broker.replicas.own_settings import rate_set
from quorumlog_broker.replicas.placements import Placements
from quorumlog_broker.replicas.producer_report import ProducerReport
from quorumlog_broker.replicas.recovery_findings import RecoveryFindings
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_broker.replicas.stepper import PartitionStepper
from quorumlog_broker.replicas.throttle import Throttles
from quorumlog_broker.replicas.topic_settings import TopicSettings
from quorumlog_broker.replicas.unreadable import UnreadableLogs
from quorumlog_broker.replicas.upcoming import UpcomingLeaderships
from quorumlog_broker.replication.alter_partition_manager import AlterPartitionManager
from quorumlog_broker.replication.fetcher_pool import FetcherPool
from quorumlog_broker.replication.follower import Follower
from quorumlog_broker.replication.isr_expiration import check_isr_for_ever
from quorumlog_broker.retention.retention import retain_for_ever
from quorumlog_broker.scrub.report import ScrubReport
from quorumlog_broker.scrub.schedule import ScrubSchedule
from quorumlog_broker.scrub.scrub import check_indexes_for_ever
from quorumlog_quorum.metadata.registration import LOST
from quorumlog_storage.retention.blocked import Blocked


class DataPlane:
    """Everything runs on the loop that called `start`; nothing here touches a disk but through a directory's worker.

    What others may use: the registry and `logs_to_open` (to read), `placements.apply`, and the paths of requests.
    """

    def __init__(
        self,
        *,
        node_id: NodeId,
        incarnation_id: Uuid,
        directories: Sequence[LogDirectory],
        clock: Clock,
        rng: Random,
        nursery: Nursery,
        transport: Transport,
        controller: ControllerCalls,
        broker_epoch: Callable[[], BrokerEpoch],
        config: ReplicationConfig,
        fetch_sessions: FetchSessions,
        on_directory_failed: Callable[[Uuid, Exception], None] = lambda _id, _error: None,
        on_assignments_changed: Callable[[], None] = lambda: None,
        on_opened: Callable[[], None] = lambda: None,
        on_damage: Callable[[], None] = lambda: None,
        on_leader_lost: Callable[[NodeId], None] = lambda _id: None,
        on_cordoned: Callable[[], None] = lambda: None,
        turn: Turn | None = None,
        cleaner: CleanerConfig | None = None,
        make_cleaner: Callable[[], Runner] | None = None,
        moves: MovesConfig | None = None,
    ) -> None:
        """incarnation_id: of this process, as in its registration.
        broker_epoch: the epoch of this broker's registration as it is now; -1 before it is registered.

        on_opened: every log that the first image assigns to this broker is open, or its directory has failed.
        on_damage: see `RecoveryFindings`.
        on_leader_lost: see `RemoteLeaderEndPoint`. on_cordoned: other directories are cordoned than before.
        turn: of the node; None: one of its own.
        make_cleaner: of one runner for each of `log.cleaner.threads`; None: nothing is compacted.
        """
        self._clock = clock
        self._config = config
        self._nursery = nursery
        self._on_directory_failed = on_directory_failed
        self._on_assignments_changed = on_assignments_changed
        self._tasks: list[asyncio.Task[None]] = []
        self.registry = Registry()
        self.stepper = PartitionStepper(clock)
        step = self.stepper.step
        self.logs_to_open = LogsToOpen(on_opened)
        self.recovery_findings = RecoveryFindings(on_damage)
        self.delayed = DelayedOperations(clock)
        self.fetch_sessions = fetch_sessions
        self.unreadable = UnreadableLogs(clock, self.registry, step, on_assignments_changed)
        self.store = PartitionStore(
            directories, self._directory_failed, self.unreadable.found, rng, config.cordoned_directories
        )
        turn = turn or Turn()
        incarnation = BrokerIncarnation(node_id, incarnation_id)
        self._node_id = node_id
        self._throttles = Throttles.of(node_id, self.registry, clock)
        self._serve(turn, incarnation, broker_epoch)
        self._keep(rng, cleaner or CleanerConfig(), make_cleaner)
        self._agree(controller, broker_epoch)
        self._follow(transport, turn, broker_epoch, on_leader_lost)
        self.cordoned = LiveCordoned(node_id, lambda: self.registry.image, self.store, directories, on_cordoned)
        self._place(incarnation)
        self._move(directories, moves or MovesConfig())
        self._report(directories, broker_epoch)
        self._subscribe()

    def _serve(self, turn: Turn, incarnation: BrokerIncarnation, broker_epoch: Callable[[], BrokerEpoch]) -> None:
        """The paths of requests."""
        clock, config, step = self._clock, self._config, self.stepper.step
        self.produce_path = ProducePath(
            clock, self.registry, self.delayed, step, turn, looks_inside=config.looks_inside_batches
        )
        self.import_path = ImportPath(self.registry, broker_epoch)
        self.upcoming = UpcomingLeaderships(
            self._node_id, self.registry, self.delayed.leaders, clock, turn, has_begun=lambda: incarnation.has_begun
        )
        self.delete_path = DeletePath(self.registry, self.delayed, step, self.upcoming)
        self.near_replicas = NearReplicas(
            self.registry,
            clock,
            self._heard_ms,
            config.replica_lag_time_max_ms,
            sends_readers=config.replica_selector == RACK_AWARE_SELECTOR,
        )
        self.fetch_path = FetchPath(
            clock, self.registry, self.delayed, step, turn, self.upcoming, self.near_replicas, self._throttles.leader
        )
        self.offset_queries = OffsetQueries(self.registry, self.upcoming, clock)
        self.leadership_listeners = LeadershipListeners()

    def _agree(self, controller: ControllerCalls, broker_epoch: Callable[[], BrokerEpoch]) -> None:
        """On ISRs, with the controller."""
        self._alter_partition_manager = AlterPartitionManager(
            node_id=self._node_id,
            registry=self.registry,
            step=self.stepper.step,
            controller=controller,
            broker_epoch=broker_epoch,
            metadata_end=lambda: self.placements.applied_end,
            retry_ms=self._config.alter_partition_retry_ms,
        )
        self.isr_counts = self._alter_partition_manager.counts

    def _keep(self, rng: Random, config: CleanerConfig, make_cleaner: Callable[[], Runner] | None) -> None:
        """What is done with the logs that are there: compaction, retention, checks."""
        clock, live = self._clock, LiveConfig(self._node_id, self.registry, config)
        self.cleaner = CleanerManager(self.registry, clock, rng, live, make_cleaner, self._start)
        self.blocked_retention: dict[PartitionKey, Blocked] = {}  # logs that keep all because of their records' times
        self.index_checks: dict[str, ScrubReport] = {}  # by path of the log directory
        self.told: Callable[[str, str, str], None] = lambda _kind, _subject, _text: None  # of events; the broker's
        self.compactions = ExplainedCompactions(self.registry, self.cleaner, clock)

    def _follow(
        self,
        transport: Transport,
        turn: Turn,
        broker_epoch: Callable[[], BrokerEpoch],
        on_leader_lost: Callable[[NodeId], None],
    ) -> None:
        """The partitions that others lead."""
        clock, config = self._clock, self._config
        self.follower = Follower(clock, self.registry, self.stepper.step, config, self.store.fresh_id)
        self.fetchers = FetcherPool(
            node_id=self._node_id,
            registry=self.registry,
            transport=transport,
            take=self.follower.take,
            clock=clock,
            nursery=self._nursery,
            config=config,
            broker_epoch=broker_epoch,
            on_leader_lost=on_leader_lost,
            turn=turn,
            throttle=self._throttles.follower,
        )

    def _place(self, incarnation: BrokerIncarnation) -> None:
        """The replicas that the metadata assigns to this broker."""
        node_id, config, step = self._node_id, self._config, self.stepper.step
        self._leaderships = Leaderships(
            self.registry,
            step,
            is_found=lambda key: key in self.store.found,
            follow=self.fetchers.follow,
            opened=self._on_log_opened,
            settled=self._on_settled,
            on_failed=self._on_assignments_changed,
        )
        self.topic_settings = TopicSettings(
            node_id, self.registry, step, self.produce_path.advance, config.topic_defaults
        )
        self.placements = Placements(
            node_id,
            self.registry,
            self.store,
            self.topic_settings,
            config,
            self.logs_to_open,
            incarnation,
            step=step,
            open_log=self._leaderships.open,
            on_assignments_changed=self._on_assignments_changed,
            promised=self._promised,
            on_broker_settings=self._broker_settings_changed,
        )
        self.returns = DirectoryReturns(self.store, self.placements)
        self.opening_progress = OpeningProgress(self._waiting_logs, self.registry, self._leaderships)

    def _move(self, directories: Sequence[LogDirectory], config: MovesConfig) -> None:
        """Replicas between this broker's directories."""
        states, step = self.cleaner.states, self.stepper.step
        self.moves = Moves(directories, self.registry, self.store, states, self._clock, config, step, self._nursery)
        self.moves.on_promises_changed = self._on_assignments_changed

    def _report(self, directories: Sequence[LogDirectory], broker_epoch: Callable[[], BrokerEpoch]) -> None:
        """What others ask for about the logs."""
        self.directory_report = DirectoryReport(
            directories,
            self.store,
            self.registry,
            self.opening_progress.by_directory,
            self.moves.copies,
            self.cordoned,
        )
        self.producer_report = ProducerReport(self.registry, self.upcoming)
        self.log_ends = LogEnds(self.registry, broker_epoch)

    def _subscribe(self) -> None:
        """Subscribe the rooms to the effects of partitions, in order, and to the events of the delayed operations."""
        stepper, delayed, sessions = self.stepper, self.delayed, self.fetch_sessions
        delayed.ends.subscribe(partial(sessions.wake, of_replica=True))
        delayed.commits.subscribe(partial(sessions.wake, of_replica=False))
        stepper.on_changed(sessions.changed)
        stepper.on(HighWatermarkMoved, _note_replicated)
        stepper.on(HighWatermarkMoved, lambda replica, to: delayed.commits.reached(replica.key, to.high_watermark))
        stepper.on(
            HighWatermarkMoved, lambda replica, _: delayed.stable.reached(replica.key, replica.core.last_stable_offset)
        )
        stepper.on(LowWatermarkMoved, lambda replica, to: delayed.starts.reached(replica.key, to.low_watermark))
        stepper.on(ProposeIsr, self._alter_partition_manager.submit)
        stepper.on(LeaderElected, self.leadership_listeners.on_elected)
        stepper.on(LeaderElected, lambda replica, _: delayed.leaders.state_changed(replica.key))
        stepper.on(LeadershipLost, lambda replica, _: replica.tail.clear())
        stepper.on(LeadershipLost, lambda replica, _: delayed.state_changed(replica.key))
        stepper.on(LeadershipLost, self.leadership_listeners.on_lost)
        stepper.on(TakeLeadership, lambda replica, _: self.fetchers.unfollow(replica.key))
        stepper.on(TakeLeadership, lambda replica, to: self._leaderships.prepare(replica, to.leader_epoch, leads=True))
        stepper.on(Follow, lambda replica, _: self.fetchers.unfollow(replica.key))
        stepper.on(Follow, lambda replica, _: delayed.leaders.state_changed(replica.key))
        stepper.on(Follow, lambda replica, to: self._leaderships.prepare(replica, to.leader_epoch, leads=False))
        stepper.on(WentOffline, lambda replica, _: self.fetchers.unfollow(replica.key))
        stepper.on(WentOffline, lambda replica, _: self._alter_partition_manager.forget(replica.key))
        stepper.on(WentOffline, lambda replica, _: replica.tail.clear())
        stepper.on(WentOffline, lambda replica, _: self._on_settled(replica.key))
        stepper.on(WentOffline, lambda replica, _: delayed.state_changed(replica.key))
        stepper.check_complete()

    async def start(self) -> None:
        """List what the directories hold, in their workers. Before the first image."""
        await self.store.find_partitions()
        registry, config = self.registry, self._config
        self._start(self._alter_partition_manager.run(), "alter partition manager")
        self._start(check_isr_for_ever(registry, self.fetch_sessions, self.stepper.step, config), "isr expiration")
        self._start(checkpoint_for_ever(registry, self.store, config, self._clock), "checkpoints")
        progress = self.opening_progress.by_directory
        self._start(report_until_open(self.logs_to_open, progress, self._clock), "opening of the logs")
        for queue in self.store.queues.values():
            self._look_after(queue)
        self._start(expire_producers_for_ever(self._node_id, registry, config, self._clock), "producer expiry")
        self.cleaner.begin()

    @property
    def appends(self) -> int:
        """How many appends this broker's directories have taken since the start, as leader and as follower."""
        return sum(queue.appends for queue in self.store.queues.values())

    async def close(self) -> frozenset[str]:
        """Stop following and serving, sync and close every log, write the checkpoints.

        Returns the paths of the directories that may get a marker of a clean shutdown.
        """
        self.produce_path.close()
        await self.moves.close()
        self.placements.close()
        self._leaderships.close()
        for task in self._tasks:
            task.cancel()
        await self.fetchers.close()
        for key in self.registry.replicas:
            self.delayed.state_changed(key)
        self.leadership_listeners.close()
        in_order = await self.store.close(self.registry.replicas.values())
        self.registry.replicas.clear()
        self.delayed.close()
        return in_order

    def _start(self, coroutine: Awaitable[None], name: str) -> None:
        assert asyncio.iscoroutine(coroutine)
        self._tasks.append(self._nursery.start(coroutine, name))

    def _broker_settings_changed(self) -> None:
        self.topic_settings.tell_ignored()
        self.cleaner.settings_changed()
        self.cordoned.refresh()
        self._throttles.settings_changed()
        self.moves.settings_changed(rate_set(self.registry.image, self._node_id, MOVE_RATE))

    def _heard_ms(self, key: PartitionKey) -> int:
        return self.fetchers.heard_ms(key)  # they are made after the paths of requests

    def _promised(self, key: PartitionKey) -> Uuid | None:
        return self.moves.promised(key)

    def _waiting_logs(self) -> tuple[PartitionKey, ...]:
        return (*self.logs_to_open.waiting, *self.returns.waiting)

    def _on_settled(self, key: PartitionKey) -> None:
        self.logs_to_open.settled(key)
        self.returns.settled(key)

    def directory_returned(self, directory: LogDirectory) -> None:
        """It is online again."""
        self._look_after(self.store.queues[directory.directory_id])
        self.moves.directory_returned()
        self._on_assignments_changed()

    def _look_after(self, queue: DirectoryQueue) -> None:
        """What one generation of a directory needs as long as it is online."""
        config, registry, clock = self._config, self.registry, self._clock
        reserve_bytes, space_ms = config.free_space_reserve_bytes, config.free_space_check_interval_ms
        self._start(check_free_space_for_ever(queue, reserve_bytes, space_ms), "free space")
        retaining = retain_for_ever(
            queue,
            registry,
            self.stepper.step,
            clock,
            config.retention_check_interval_ms,
            initial_delay_ms=config.initial_task_delay_ms,
            blocked=self.blocked_retention,
        )
        self._start(retaining, "retention")
        path = queue.directory.path
        report = self.index_checks[path] = ScrubReport(path, self._tell_event)
        if config.index_check_interval_ms >= 0:
            now_ms = clock.now_ms()
            schedule = ScrubSchedule(config.index_check_interval_ms, config.index_check_bytes_per_s, now_ms)
            self._start(check_indexes_for_ever(queue, registry, clock, schedule, report), "index check")

    def _tell_event(self, kind: str, subject: str, text: str) -> None:
        self.told(kind, subject, text)

    def _on_log_opened(self, replica: Replica) -> None:
        assert replica.queue is not None and replica.partition_log is not None
        self.recovery_findings.opened(replica.key, replica.name, replica.queue, replica.partition_log)
        self.moves.opened(replica)
        if replica.assigned == LOST:
            self._on_assignments_changed()

    def _directory_failed(self, queue: DirectoryQueue, error: Exception) -> None:
        self.placements.directory_failed(queue)
        self.moves.directory_failed(queue)
        self._on_assignments_changed()
        self._on_directory_failed(queue.directory_id, error)


def _note_replicated(replica: Replica, to: HighWatermarkMoved) -> None:
    """Transactions that ended below it need not be kept apart any more."""
    if replica.log is not None and replica.log.producers is not None:
        replica.log.producers.replicated_end = to.high_watermark
