"""The rooms that hold and move partitions' records, put together: built, joined, started, and closed in order.

There is no logic here and nothing is passed through: handlers, lifecycle and metrics use the rooms themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random

from broker.delayed.operations import DelayedOperations
from broker.fetch.fetch_path import FetchPath
from broker.fetch.offset_queries import OffsetQueries
from broker.fetch.sessions import FetchSessions
from broker.lifecycle.controller_channel import ControllerCalls
from broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from broker.logdirs.partition_store import PartitionStore
from broker.logdirs.space_checks import check_free_space_for_ever
from broker.partition.events import (
    Follow,
    HighWatermarkMoved,
    LeaderElected,
    LeadershipLost,
    LowWatermarkMoved,
    ProposeIsr,
    TakeLeadership,
    WentOffline,
)
from broker.produce.delete_records import DeletePath
from broker.produce.produce_path import ProducePath
from broker.produce.producer_expiry import expire_producers_for_ever
from broker.replicas.checkpoints import checkpoint_for_ever
from broker.replicas.config import ReplicationConfig
from broker.replicas.directory_report import DirectoryReport
from broker.replicas.findings import RecoveryFindings
from broker.replicas.leadership_listeners import LeadershipListeners
from broker.replicas.leaderships import Leaderships
from broker.replicas.opening import Opening
from broker.replicas.own_life import OwnLife
from broker.replicas.placements import Placements
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica
from broker.replicas.stepper import PartitionStepper
from broker.replicas.topic_settings import TopicSettings
from broker.replicas.unreadable import UnreadableLogs
from broker.replication.alter_partition_manager import AlterPartitionManager
from broker.replication.fetcher_pool import FetcherPool
from broker.replication.follower import Follower
from broker.replication.isr_expiration import check_isr_for_ever
from quorum.metadata.registration import LOST
from quorumlog.clock import Clock
from quorumlog.ids import BrokerEpoch, NodeId, Uuid
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Transport
from quorumlog.turn import Turn


class DataPlane:
    """Everything runs on the loop that called `start`; nothing here touches a disk but through a directory's worker.

    What others may use: the registry and `opening` (to read), `placements.apply`, and the paths of requests.
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
        turn: Turn | None = None,
    ) -> None:
        """incarnation_id: of this process, as in its registration.
        broker_epoch: the epoch of this broker's registration as it is now; -1 before it is registered.

        on_opened: every log that the first image assigns to this broker is open, or its directory has failed.
        on_damage: see `RecoveryFindings`.
        on_leader_lost: see `RemoteLeaderEndPoint`. turn: of the node; None: one of its own.
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
        self.opening = Opening(on_opened)
        self.findings = RecoveryFindings(on_damage)
        self.delayed = DelayedOperations(clock)
        self.fetch_sessions = fetch_sessions
        self.unreadable = UnreadableLogs(clock, self.registry, step, on_assignments_changed)
        self.store = PartitionStore(directories, self._directory_failed, self.unreadable.found, rng)
        turn = turn or Turn()
        self.produce_path = ProducePath(
            clock, self.registry, self.delayed, step, turn, looks_inside=config.looks_inside_batches
        )
        self.delete_path = DeletePath(self.registry, self.delayed, step)
        self.fetch_path = FetchPath(clock, self.registry, self.delayed, step, turn)
        self.offset_queries = OffsetQueries(self.registry)
        self.directory_report = DirectoryReport(directories, self.store, self.registry)
        self.leadership_listeners = LeadershipListeners()
        self._alter_partition_manager = AlterPartitionManager(
            node_id=node_id,
            registry=self.registry,
            step=step,
            controller=controller,
            broker_epoch=broker_epoch,
            retry_ms=config.alter_partition_retry_ms,
        )
        self.follower = Follower(clock, self.registry, step, config, self.store.fresh_id)
        self._fetchers = FetcherPool(
            node_id=node_id,
            registry=self.registry,
            transport=transport,
            sink=self.follower,
            clock=clock,
            nursery=nursery,
            config=config,
            broker_epoch=broker_epoch,
            on_leader_lost=on_leader_lost,
            turn=turn,
        )
        self._leaderships = Leaderships(
            self.registry,
            step,
            follow=self._fetchers.follow,
            opened=self._on_log_opened,
            settled=self.opening.settled,
            on_failed=on_assignments_changed,
        )
        self.placements = Placements(
            node_id,
            self.registry,
            self.store,
            TopicSettings(node_id, self.registry, step, self.produce_path.advance, config.topic_defaults),
            config,
            self.opening,
            OwnLife(node_id, incarnation_id),
            step=step,
            open_log=self._leaderships.open,
            on_assignments_changed=on_assignments_changed,
        )
        self._subscribe()

    def _subscribe(self) -> None:
        """Subscribe the rooms to the effects of partitions, in order, and to the events of the delayed operations."""
        stepper, delayed, sessions = self.stepper, self.delayed, self.fetch_sessions
        delayed.ends.subscribe(partial(sessions.wake, of_replica=True))
        delayed.commits.subscribe(partial(sessions.wake, of_replica=False))
        stepper.on_changed(sessions.changed)
        stepper.on(HighWatermarkMoved, lambda replica, to: delayed.commits.reached(replica.key, to.high_watermark))
        stepper.on(LowWatermarkMoved, lambda replica, to: delayed.starts.reached(replica.key, to.low_watermark))
        stepper.on(ProposeIsr, self._alter_partition_manager.submit)
        stepper.on(LeaderElected, self.leadership_listeners.on_elected)
        stepper.on(LeadershipLost, lambda replica, _: replica.tail.clear())
        stepper.on(LeadershipLost, lambda replica, _: delayed.state_changed(replica.key))
        stepper.on(LeadershipLost, self.leadership_listeners.on_lost)
        stepper.on(TakeLeadership, lambda replica, _: self._fetchers.unfollow(replica.key))
        stepper.on(TakeLeadership, lambda replica, to: self._leaderships.prepare(replica, to.leader_epoch, leads=True))
        stepper.on(Follow, lambda replica, _: self._fetchers.unfollow(replica.key))
        stepper.on(Follow, lambda replica, to: self._leaderships.prepare(replica, to.leader_epoch, leads=False))
        stepper.on(WentOffline, lambda replica, _: self._fetchers.unfollow(replica.key))
        stepper.on(WentOffline, lambda replica, _: self._alter_partition_manager.forget(replica.key))
        stepper.on(WentOffline, lambda replica, _: replica.tail.clear())
        stepper.on(WentOffline, lambda replica, _: self.opening.settled(replica.key))
        stepper.on(WentOffline, lambda replica, _: delayed.state_changed(replica.key))
        stepper.check_complete()

    async def start(self) -> None:
        """List what the directories hold, in their workers. Before the first image."""
        await self.store.find_partitions()
        registry, config = self.registry, self._config
        self._start(self._alter_partition_manager.run(), "alter partition manager")
        self._start(check_isr_for_ever(registry, self.fetch_sessions, self.stepper.step, config), "isr expiration")
        self._start(checkpoint_for_ever(registry, self.store, config, self._clock), "checkpoints")
        for queue in self.store.queues.values():
            self._start(check_free_space_for_ever(queue, config.free_space_reserve_bytes), "free space")
        self._start(expire_producers_for_ever(registry, config, self._clock), "producer expiry")

    @property
    def appends(self) -> int:
        """How many appends this broker's directories have taken since the start, as leader and as follower."""
        return sum(queue.appends for queue in self.store.queues.values())

    async def close(self) -> bool:
        """Stop following and serving, sync and close every log, write the checkpoints.

        True if every directory was stopped cleanly: only then may a clean-shutdown marker be written.
        """
        self.produce_path.close()
        self.placements.close()
        self._leaderships.close()
        for task in self._tasks:
            task.cancel()
        await self._fetchers.close()
        for key in self.registry.replicas:
            self.delayed.state_changed(key)
        self.leadership_listeners.close()
        clean = await self.store.close(self.registry.replicas.values())
        self.registry.replicas.clear()
        self.delayed.close()
        return clean

    def _start(self, coroutine: Awaitable[None], name: str) -> None:
        assert asyncio.iscoroutine(coroutine)
        self._tasks.append(self._nursery.start(coroutine, name))

    def _on_log_opened(self, replica: Replica) -> None:
        assert replica.queue is not None and replica.partition_log is not None
        self.findings.opened(replica.key, replica.name, replica.queue, replica.partition_log)
        if replica.assigned == LOST:
            self._on_assignments_changed()

    def _directory_failed(self, queue: DirectoryQueue, error: Exception) -> None:
        self.placements.directory_failed(queue)
        self._on_assignments_changed()
        self._on_directory_failed(queue.directory_id, error)
