"""The shell around the quorum's core: performs its effects, one after the other, and brings back what came of them.

- One queue of effects. PersistQuorumState holds the queue until the disk is done; everything else is started at once,
  and its completion is an event. Nothing here decides anything.
- A failure of the metadata directory, of a listener or of the core stops the node: it is raised in a task of the
  nursery, whose `on_crash` is the node's fail-stop.

Voters and observers run the same driver; `voters` decides which this node is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from quorum.committed import RETRY_MS, Delivery
from quorum.death_proof import DeathProof
from quorum.late_timer import LateTimer
from quorum.listener import RaftListener
from quorum.metadata_directory import METADATA_LOG, MetadataDirectory, settle
from quorum.metadata_log import MetadataLog
from quorum.open_requests import OpenRequests, check_request
from quorum.peers import Peers
from quorum.raft.config import RaftConfig
from quorum.raft.effects import (
    AppendFetched,
    AppendLeaderChange,
    AppendValues,
    Effect,
    HighWatermark,
    LeaderChanged,
    LeadershipClaimed,
    LeadershipLost,
    PersistQuorumState,
    ProbeLeader,
    ReadForFetch,
    Reply,
    Send,
    ShutdownFinished,
    TruncateTo,
)
from quorum.raft.events import (
    AppendAsked,
    Appended,
    Event,
    LogTruncated,
    NotLeader,
    PeerProvenDead,
    RecordsRead,
    ShutdownAsked,
    Started,
    Synced,
    TimerFired,
)
from quorum.raft.log_state import LogState
from quorum.raft.quorum_state import QuorumState
from quorum.raft.raft import Raft
from quorum.raft.roles import Role
from quorum.raft.voters import Voter, VoterKey, VoterSet
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset, Uuid
from quorumlog.messages.quorum import DescribeQuorumResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Context, Transport
from storage.disk import Disk
from storage.log_config import LogConfig
from storage.offset_files import OffsetFile
from storage.worker import Worker, WorkerClosed, WorkerFull
from storage.writer import Outcome

__all__ = ["Driver", "NotLeader", "RaftConfig", "Voter", "VoterSet"]


class Driver:
    """One node's part in the quorum. `start` once, `stop` once; everything on one event loop."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        directory_id: Uuid,
        cluster_id: str,
        voters: VoterSet,
        transport: Transport,
        worker: Worker,
        disk: Disk,
        clock: Clock,
        rng: Random,
        nursery: Nursery,
        listeners: Sequence[RaftListener] = (),
        config: RaftConfig | None = None,
        log_config: LogConfig = METADATA_LOG,
        recovery_points: OffsetFile | None = None,
        clean: bool = False,
    ) -> None:
        """directory_id: of the log directory that the metadata log lies in. worker: of the metadata log's directory.

        recovery_points: of the metadata log; None: keep none.
        clean: as for `Log.open`.
        """
        self._key = VoterKey(node_id, directory_id)
        self._cluster_id, self._voters = cluster_id, voters
        self._clock, self._rng, self._nursery = clock, rng, nursery
        self._listeners = tuple(listeners)
        self._config = config or RaftConfig()
        self._directory = MetadataDirectory(
            worker=worker,
            disk=disk,
            log_config=log_config,
            recovery_points=recovery_points,
            clean=clean,
        )
        self._peers = Peers(node_id=node_id, voters=voters, transport=transport, nursery=nursery)
        self._proof = DeathProof(transport=transport, peers=self._peers, nursery=nursery, on_dead=self._on_dead)
        self._raft: Raft | None = None  # until started
        self._effects: deque[Effect] = deque()
        self._held = False  # the queue of effects waits for the disk
        self._performing = False
        self._requests = OpenRequests()
        self._timer = LateTimer(clock, lambda: self._tell(TimerFired()))
        self._stopped = False
        self._shutdown: asyncio.Future[None] | None = None
        self._leader_id: NodeId | None = None  # as the listeners were told
        self._epoch: Epoch = 0
        self._high_watermark: Offset = -1

    # --- for the node ---

    @property
    def node_id(self) -> NodeId:
        return self._key.node_id

    @property
    def leader(self) -> NodeId | None:
        """None while none is known."""
        return self._leader_id

    @property
    def epoch(self) -> Epoch:
        return self._epoch

    @property
    def high_watermark(self) -> Offset:
        """Exclusive; -1: not known yet."""
        return self._high_watermark

    @property
    def is_leader(self) -> bool:
        """Appends are accepted, though perhaps never committed."""
        return not self._stopped and self._raft is not None and self._raft.role is Role.LEADER

    @property
    def role(self) -> Role:
        return Role.UNATTACHED if self._raft is None else self._raft.role

    @property
    def end_offset(self) -> Offset:
        """Exclusive end of the own log, what is still being written included."""
        return 0 if self._raft is None else self._raft.core.log.accepted_end

    @property
    def delivered(self) -> Offset:
        """Exclusive end of what the listeners have been given."""
        return 0 if self._raft is None else self._delivery.delivered

    async def start(self) -> None:
        """Open the log and take part. Raises CorruptQuorumState, DiskError, DirectoryOffline."""
        assert self._raft is None, "start is called once"
        log, saved = await self._directory.open()
        self._log = MetadataLog(log, self._directory.worker, self._fail, self._directory.recovery_points)
        self._delivery = Delivery(self._log, log.start_offset, self._listeners, self._fail)
        self._raft = Raft(
            key=self._key,
            voters=self._voters,
            config=self._config,
            rng=self._rng,
            log=LogState(start=log.start_offset, end=log.end_offset, epochs=log.epochs.entries),
            saved=saved,
        )
        self._tell(Started())

    async def stop(self, graceful: bool = True) -> bool:
        """graceful: hand leadership over first. True: the log was open, and is synced and closed now."""
        if self._raft is not None and graceful and not self._stopped:
            await self._hand_over()
        was_stopped, self._stopped = self._stopped, True
        self._end(ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {self.node_id} is shutting down"))
        await self._peers.close()
        return not was_stopped and self._raft is not None and await self._close_log()

    async def handle(self, context: Context, request: Any) -> Any:
        """Answer a request of the quorum: Vote, BeginQuorumEpoch, EndQuorumEpoch, QuorumFetch, DescribeQuorum."""
        if self._raft is None or self._stopped:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {self.node_id} is not running yet, or no more")
        response = await self._requests.ask(check_request(context.peer, request), self._tell)
        if isinstance(response, DescribeQuorumResponse):
            return replace(response, cluster_id=self._cluster_id)
        return response

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        """Append one atomic batch as the leader of `epoch`. Returns its exclusive end; listeners learn of the commit.

        Raises NotLeader, ApiError(RECORD_LIST_TOO_LARGE); then nothing was appended.
        """
        if self._raft is None or self._stopped:
            raise NotLeader(epoch, self._leader_id, self._epoch)
        size = sum(len(value) for value in values)
        if size > self._config.max_batch_bytes:
            text = f"{size} bytes in one batch of metadata, at most {self._config.max_batch_bytes}"
            raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, text)
        try:
            effects = self._raft.step(AppendAsked(epoch, values), self._clock.now_ms())
        except AssertionError as error:
            self._fail(error)
            raise
        self._effects.extend(effects)
        end_offset = self._raft.core.log.accepted_end
        self._perform()
        return end_offset

    # --- events in, effects out ---

    def _tell(self, event: Event) -> None:
        """Let the core decide and start what it wants. Whatever it raises stops the node."""
        if self._stopped or self._raft is None:
            return
        try:
            self._effects.extend(self._raft.step(event, self._clock.now_ms()))
        except Exception as error:
            self._fail(error)
            return
        self._perform()
        self._timer.set(None if self._stopped else self._raft.deadline_ms())

    def _perform(self) -> None:
        """Perform queued effects up to one that holds the queue. Not entered twice: effects may cause events."""
        if self._performing:
            return
        self._performing = True
        try:
            while self._effects and not self._held and not self._stopped:
                self._perform_next()
        except Exception as error:
            self._fail(error)
        finally:
            self._performing = False

    def _perform_next(self) -> None:
        effect = self._effects.popleft()
        try:
            self._perform_one(effect)
        except WorkerFull:
            self._effects.appendleft(effect)
            self._held = True
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._go_on)

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case PersistQuorumState(state):
                self._persist(state)
            case Send():
                self._peers.call(effect, self._tell)
            case Reply(token, message):
                self._requests.answer(token, message)
            case ReadForFetch(token, offset, max_bytes, upper_bound):
                self._log.read(offset, max_bytes, upper_bound, lambda data: self._tell(RecordsRead(token, data)))
            case AppendLeaderChange() | AppendValues() | AppendFetched():
                self._log.append(effect, self._clock.wall_ms(), self._on_written, self._on_synced)
            case TruncateTo(end_offset):
                self._log.truncate_to(end_offset, lambda end: self._tell(LogTruncated(end)))
            case ProbeLeader(node_id):
                self._proof.suspect(node_id)
            case ShutdownFinished():
                if self._shutdown is not None:
                    settle(self._shutdown, None)
            case HighWatermark() | LeaderChanged() | LeadershipClaimed() | LeadershipLost():
                self._announce(effect)

    def _announce(self, effect: HighWatermark | LeaderChanged | LeadershipClaimed | LeadershipLost) -> None:
        match effect:
            case HighWatermark(offset):
                self._high_watermark = offset
                self._delivery.on_high_watermark(offset)
            case LeaderChanged(leader_id, epoch):
                self._on_leader_changed(leader_id, epoch)
            case LeadershipClaimed(epoch, end_offset):
                self._delivery.on_claimed(epoch, end_offset)
            case LeadershipLost(epoch):
                self._delivery.on_lost(epoch)

    def _on_leader_changed(self, leader_id: NodeId | None, epoch: Epoch) -> None:
        self._leader_id, self._epoch = leader_id, epoch
        if leader_id is not None and leader_id != self.node_id:
            self._proof.meet(leader_id)
        endpoint = None if leader_id is None else self._voters.endpoint_of(leader_id)
        self._delivery.on_leader_changed(NO_NODE if leader_id is None else leader_id, epoch, endpoint)

    def _on_written(self, end_offset: Offset) -> None:
        self._tell(Appended(end_offset))

    def _on_synced(self, end_offset: Offset) -> None:
        self._tell(Synced(end_offset))

    def _on_dead(self, node_id: NodeId) -> None:
        self._tell(PeerProvenDead(node_id))

    def _persist(self, state: QuorumState) -> None:
        """The queue of effects goes on when `state` is durable."""
        self._directory.persist(state, self._on_persisted)
        self._held = True

    def _on_persisted(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._fail(outcome.error)
        else:
            self._go_on()

    def _go_on(self) -> None:
        self._held = False
        self._perform()

    # --- the end ---

    async def _hand_over(self) -> None:
        """Returns when a successor took over, all voters were told, or nobody answered in time."""
        self._shutdown = asyncio.get_running_loop().create_future()
        self._tell(ShutdownAsked())
        try:
            async with asyncio.timeout(2 * self._config.request_timeout_ms / 1000):
                await self._shutdown
        except TimeoutError:
            pass  # the disk holds the queue: the others will find out

    async def _close_log(self) -> bool:
        """False: recovery will do."""
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        try:
            self._log.close(lambda outcome: settle(done, outcome))
        except (WorkerFull, WorkerClosed):
            return False
        return (await done).error is None

    def _fail(self, error: Exception) -> None:
        """Say nothing more to anyone, and let the node stop."""
        if self._stopped:
            return
        self._stopped = True
        self._end(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"node {self.node_id} has failed"))

        async def fail() -> None:
            raise error

        self._nursery.start(fail(), "the quorum's driver")

    def _end(self, error: ApiError) -> None:
        """After `_stopped` is set."""
        self._timer.cancel()
        if self._raft is not None:
            self._delivery.stopped = True
        self._requests.fail(error)
        if self._shutdown is not None:
            settle(self._shutdown, None)
