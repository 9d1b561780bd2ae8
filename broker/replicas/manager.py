"""All partitions of one broker: what handlers, the lifecycle and the metadata subscription may ask of them.

The manager is a shell. What a partition may do is decided by `partition.py`; which partitions there are by
`placements.py`; bytes go through the directories' workers. Everything here runs on the node's loop; nothing here
touches a disk by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random

from broker.delayed.operations import DelayedOperations
from broker.fetch.epoch_ends import end_of_epoch
from broker.fetch.fetch_path import FetchPath, FetchTarget
from broker.fetch.list_offsets import list_offset
from broker.fetch.session import FetchSession
from broker.fetch.sessions import FetchSessions, FetchTurn
from broker.logdirs.directory_report import report_directories
from broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from broker.logdirs.partition_store import PartitionStore
from broker.partition.events import (
    Effect,
    Event,
    Follow,
    FollowerFetched,
    FollowerHeard,
    HighWatermarkMoved,
    IsrAnswered,
    LeadershipLost,
    LogFailed,
    LowWatermarkMoved,
    ProposeIsr,
    TakeLeadership,
    Tick,
)
from broker.produce.delete_records import DeletePath
from broker.produce.produce_path import AppendResult, ProducePath
from broker.replicas.config import ReplicationConfig
from broker.replicas.housekeeping import checkpoint_for_ever, expire_producers_for_ever, tick_for_ever
from broker.replicas.leaderships import Leaderships
from broker.replicas.opening import Opening
from broker.replicas.placements import Placements
from broker.replicas.reconciler import PartitionKey
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica
from broker.replicas.topic_settings import TopicSettings
from broker.replication.alter_partition_manager import AlterPartitionManager, ControllerCalls
from broker.replication.fetcher_pool import FetcherPool
from broker.replication.follower import Follower
from quorum.metadata.delta import Delta
from quorum.metadata.image import Image
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import BrokerEpoch, Epoch, NodeId, Offset, Uuid
from quorumlog.messages.admin import LogDirDescription
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.controller import DirectoryAssignment
from quorumlog.messages.fetch import (
    EpochPartitionResult,
    FetchPartitionResponse,
    ListOffsetsPartitionResponse,
    ReplicaState,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Transport

__all__ = ["AppendResult", "ControllerCalls", "FetchTarget", "LogDirectory", "ReplicaManager"]


class ReplicaManager:
    """Raises nothing but ApiError from what handlers call, for reasons that a client may be told."""

    def __init__(
        self,
        *,
        node_id: NodeId,
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
        on_source_lost: Callable[[NodeId], None] = lambda _id: None,
    ) -> None:
        """broker_epoch: the epoch of this broker's registration as it is now; -1 before it is registered.

        on_opened: every log that the first image assigns to this broker is open, or its directory has failed.
        """
        self._node_id = node_id
        self._directories = directories
        self._clock = clock
        self._nursery = nursery
        self._config = config
        self._on_directory_failed = on_directory_failed
        self.opening = Opening(on_opened)
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []
        self._registry = Registry()
        self._sessions = fetch_sessions
        self._delayed = DelayedOperations(clock, fetch_sessions)
        self._store = PartitionStore(directories, self._directory_failed, rng)
        self._delete = DeletePath(self._registry, self._delayed, self._step)
        self._produce = ProducePath(clock, self._delayed, self._step)
        self._fetch = FetchPath(clock, self._registry, self._delayed, self._step)
        self._proposals = AlterPartitionManager(
            node_id=node_id, controller=controller, broker_epoch=broker_epoch, retry_ms=config.alter_partition_retry_ms
        )
        self._fetchers = FetcherPool(
            node_id=node_id,
            registry=self._registry,
            transport=transport,
            sink=Follower(clock, self._registry, self._step, config),
            clock=clock,
            nursery=nursery,
            config=config,
            broker_epoch=broker_epoch,
            on_source_lost=on_source_lost,
        )
        self._leaderships = Leaderships(
            self._registry,
            self._step,
            follow=self._fetchers.follow,
            settled=self.opening.settled,
        )
        self._placements = Placements(
            node_id,
            self._registry,
            self._store,
            TopicSettings(node_id, self._registry, self._step, self._produce.advance, config.topic_defaults),
            config,
            self.opening,
            step=self._step,
            let_go=self._stop,
            on_assignments_changed=on_assignments_changed,
        )

    async def start(self) -> None:
        """List what the directories hold, in their workers. Called before the first `apply`."""
        await self._store.find_partitions()
        self._start(self._proposals.run(), "isr proposals")
        self._start(tick_for_ever(self._registry, self._sessions, self._step, self._config), "isr ticks")
        self._start(checkpoint_for_ever(self._registry, self._store, self._config, self._clock), "checkpoints")
        self._start(expire_producers_for_ever(self._registry, self._config, self._clock), "producer expiry")

    # --- what handlers ask ---

    def append(
        self, topic: Uuid | str, index: int, records: Buffer, *, acks: int, timeout_ms: int
    ) -> Awaitable[AppendResult]:
        """Validate and enqueue now, in the order of calls; the awaitable is for the answer only and may be let go.

        records: whole batches as produced; kept until written. acks: 0 and 1 wait for the leader's disk, -1 for every
        in-sync replica. Raises ApiError now where nothing was appended; the awaitable raises ApiError where something
        may have been: NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        if self._closing:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self._node_id} is shutting down")
        return self._produce.append(self._registry.find(topic, index), records, acks=acks, timeout_ms=timeout_ms)

    async def fetch(
        self,
        targets: Sequence[FetchTarget],
        *,
        replica: ReplicaState | None,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        ended: FetchSession | None = None,
    ) -> list[FetchPartitionResponse]:
        """One answer per target, in their order; an error concerns its partition alone.

        replica: set by a following broker (internal listener only); its fetch offsets acknowledge what lies below them.
        ended: its session until now. Waits up to max_wait_ms while fewer than min_bytes are there and all is well.
        """
        return await self._fetch.fetch(
            targets, replica=replica, max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, ended=ended
        )

    async def fetch_changed(
        self, turn: FetchTurn, *, max_wait_ms: int, min_bytes: int, max_bytes: int
    ) -> tuple[list[FetchPartitionResponse], list[bool]]:
        """`fetch` for a request of an incremental session: answers to `turn.wanted`, and who has more to be read.

        Raises ApiError where the session goes on without this request.
        """
        return await self._fetch.fetch_changed(turn, max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes)

    async def list_offset(
        self,
        topic: Uuid | str,
        index: int,
        timestamp_ms: int,
        *,
        current_leader_epoch: int = -1,
        replica_id: NodeId = -1,
    ) -> ListOffsetsPartitionResponse:
        """timestamp_ms: a time, or -1 latest, -2 earliest, -3 of the largest timestamp. Errors are in the answer."""
        try:
            replica = self._registry.find(topic, index)
            return await list_offset(replica, index, timestamp_ms, current_leader_epoch, replica_id)
        except ApiError as error:
            return ListOffsetsPartitionResponse(index=index, error_code=error.code)

    def delete_records(self, topic: Uuid | str, index: int, offset: Offset, timeout_ms: int) -> Awaitable[Offset]:
        """Records before `offset` (-1: the high watermark) go; begun now, in the order of calls.

        Awaited: the low watermark, once every live replica has deleted them. Raises ApiError: now where nothing was
        deleted; awaited NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR, where some may have.
        """
        return self._delete.delete(topic, index, offset, timeout_ms)

    def end_of_epoch(self, topic: Uuid | str, index: int, epoch: Epoch, current_epoch: Epoch) -> EpochPartitionResult:
        """Where `epoch` ends in the log of this leader. Errors are in the answer."""
        try:
            return end_of_epoch(self._registry.find(topic, index), index, epoch, current_epoch)
        except ApiError as error:
            return EpochPartitionResult(index=index, error_code=error.code)

    async def report_directories(self) -> list[LogDirDescription]:
        """Every log directory, with what lies in it."""
        return await report_directories(self._directories, self._store, self._registry.replicas.values())

    # --- what the lifecycle asks ---

    def pending_assignments(self) -> list[DirectoryAssignment]:
        """Replicas whose directory is not the one that the metadata says, in order of topic id and index."""
        return self._placements.pending_assignments()

    def leader_count(self) -> int:
        """Partitions that this broker leads now."""
        return sum(replica.core.is_leader for replica in self._registry.replicas.values())

    @property
    def replicas(self) -> Mapping[PartitionKey, Replica]:
        """For reports, metrics and the simulation's invariants; to be looked at only."""
        return self._registry.replicas

    async def close(self) -> bool:
        """Stop following and serving, sync and close every log, write the checkpoints.

        True where every directory was stopped cleanly: only then may a clean-shutdown marker be written.
        """
        self._closing = True
        self._leaderships.close()
        for task in self._tasks:
            task.cancel()
        await self._fetchers.close()
        for key in self._registry.replicas:
            self._delayed.state_changed(key)
        clean = await self._store.close(self._registry.replicas.values())
        self._registry.replicas.clear()
        self._delayed.close()
        return clean

    # --- the metadata ---

    def apply(self, delta: Delta, image: Image) -> None:
        """A MetadataListener: follow the metadata. Logs are opened and leadership is taken up in the background."""
        if not self._closing:
            self._placements.apply(delta, image)

    def _stop(self, replica: Replica) -> None:
        """It neither leads nor follows any more, and whoever waits at it is told so."""
        self._fetchers.unfollow(replica.key)
        self._proposals.forget(replica.key)
        self._step(replica, LogFailed())
        replica.tail.clear()
        self.opening.settled(replica.key)
        self._delayed.state_changed(replica.key)

    # --- the cores ---

    def _step(self, replica: Replica, event: Event) -> None:
        effects = replica.core.step(event, self._clock.now_ms())
        replica.core.check_invariants()
        if effects or not isinstance(event, _QUIET):
            self._sessions.changed(replica.key)
        for effect in effects:
            self._perform(replica, effect)

    def _perform(self, replica: Replica, effect: Effect) -> None:
        match effect:
            case HighWatermarkMoved():
                self._delayed.commits.reached(replica.key, effect.high_watermark)
            case LowWatermarkMoved():
                self._delayed.starts.reached(replica.key, effect.low_watermark)
            case ProposeIsr():
                self._proposals.propose(replica.key, effect, lambda answer: self._isr_answered(replica, answer))
            case LeadershipLost():
                replica.tail.clear()
                self._delayed.state_changed(replica.key)
            case TakeLeadership():
                self._fetchers.unfollow(replica.key)
                self._leaderships.prepare(replica, effect.leader_epoch, leads=True)
            case Follow():
                self._fetchers.unfollow(replica.key)
                self._leaderships.prepare(replica, effect.leader_epoch, leads=False)

    def _isr_answered(self, replica: Replica, answer: IsrAnswered) -> None:
        if self._registry.replicas.get(replica.key) is replica:
            self._step(replica, answer)

    def _directory_failed(self, queue: DirectoryQueue, error: Exception) -> None:
        for replica in list(self._registry.replicas.values()):
            if replica.queue is queue:
                self._stop(replica)
        self._on_directory_failed(queue.directory_id, error)

    # --- by time ---

    def _start(self, coroutine: Awaitable[None], name: str) -> None:
        assert asyncio.iscoroutine(coroutine)
        self._tasks.append(self._nursery.start(coroutine, name))


_QUIET = (FollowerFetched, FollowerHeard, Tick)  # without effects they change nothing that a fetch is answered
