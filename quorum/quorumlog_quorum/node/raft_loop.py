"""The loop around the core: events in, effects out, performed in order.

Effects wait in one queue. PersistQuorumState holds the queue until the state is on disk. Every other effect is started
at once, and its completion is an event. Nothing is decided here.

The effects of the core, performed one after another, and never past one that must be durable first.

A timer that gives received messages time to be handled when it fires much too late.

After a stall (a stopped process, a pause of the machine) the event loop finds overdue timers and received messages at
the same time. If the timer went first, a follower would start an election after every pause, although the leader's
answer is already in its socket.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog_quorum.disk.metadata_directory import MetadataDirectory
from quorumlog_quorum.disk.metadata_log import MetadataLog
from quorumlog_quorum.node.announcements import Announcements
from quorumlog_quorum.node.candidate_probe import CandidateProbe
from quorumlog_quorum.node.death_proof import DeathProof
from quorumlog_quorum.node.open_asks import OpenAsks
from quorumlog_quorum.node.peers import Peers
from quorumlog_quorum.raft import (
    AppendControl,
    AppendFetched,
    AppendLeaderChange,
    AppendRequested,
    AppendValues,
    DropSnapshot,
    FinishSnapshot,
    HandOverBegun,
    HighWatermark,
    KRaftVersionAnswered,
    LeaderChanged,
    LeadershipClaimed,
    LeadershipConfirmed,
    LeadershipLost,
    LogSynced,
    LogTruncated,
    LogWritten,
    MembershipSettled,
    PersistQuorumState,
    ProbeCandidate,
    ProbeLeader,
    QuorumState,
    Raft,
    RaftEffect,
    RaftEvent,
    RaftRole,
    ReadForFetch,
    ReadSnapshot,
    RecordsRead,
    RecordsRegained,
    Reply,
    RestartLog,
    Send,
    ShutdownFinished,
    ShutdownRequested,
    SnapshotFinished,
    SnapshotInstalled,
    SnapshotPieceStored,
    SnapshotRead,
    StoreSnapshotPiece,
    TimerFired,
    TruncateTo,
)
from quorumlog_quorum.snapshot_service.served_snapshots import ServedSnapshots
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import SnapshotHeading, SnapshotId
from quorumlog_storage.writer.worker import WorkerFull
from quorumlog_storage.writer.writer import Outcome

RETRY_MS = 5  # until an effect that met a full worker queue is tried again


class EffectQueue:
    """`hold` stops the queue before the next effect until `release`. Performing an effect may call any method."""

    def __init__(self, perform: Callable[[RaftEffect], None], on_error: Callable[[Exception], None]) -> None:
        """perform: starts one effect; raises WorkerFull if it did nothing and must be tried again later.

        on_error: called with any other exception of `perform`. It may call `stop`; else the next effect follows.
        """
        self._perform, self._on_error = perform, on_error
        self._waiting: deque[RaftEffect] = deque()
        self._held = False
        self._running = False
        self._stopped = False

    def add(self, effects: Iterable[RaftEffect]) -> None:
        """Queue these effects behind those that wait."""
        self._waiting.extend(effects)
        self._run()

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self._held = False
        self._run()

    def stop(self) -> None:
        """Perform nothing more."""
        self._stopped = True

    def _run(self) -> None:
        """Not entered twice: an effect may cause events, and they more effects, which then wait for their turn."""
        if self._running:
            return
        self._running = True
        try:
            while self._waiting and not self._held and not self._stopped:
                self._perform_next()
        finally:
            self._running = False

    def _perform_next(self) -> None:
        effect = self._waiting.popleft()
        try:
            self._perform(effect)
        except WorkerFull:
            self._waiting.appendleft(effect)
            self.hold()
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self.release)
        except Exception as error:
            self._on_error(error)


STALL_MS = 100  # a timer that is later than this waits once more ...
GRACE_MS = 20  # ... this long


class LateTimer:
    """Has one deadline at a time; a new one replaces it."""

    def __init__(self, clock: Clock, on_due: Callable[[], None]) -> None:
        self._clock, self._on_due = clock, on_due
        self._handle: asyncio.TimerHandle | None = None
        self._grace_until_ms: int | None = None

    def set(self, deadline_ms: int | None) -> None:
        """None: no deadline. A grace period that has begun keeps its end."""
        self.cancel()
        if deadline_ms is None:
            return
        now_ms = self._clock.now_ms()
        if deadline_ms > now_ms:
            self._grace_until_ms = None  # a message has moved the deadline: the grace period has served
        due_ms = max(deadline_ms, self._grace_until_ms or deadline_ms)
        delay_ms = max(0, due_ms - now_ms)
        self._handle = asyncio.get_running_loop().call_later(delay_ms / 1000, self._fire, deadline_ms)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, deadline_ms: int) -> None:
        self._handle = None
        now_ms = self._clock.now_ms()
        if now_ms < deadline_ms:  # the loop's clock and ours round differently
            self.set(deadline_ms)
        elif now_ms - deadline_ms > STALL_MS and self._grace_until_ms is None:
            self._grace_until_ms = now_ms + GRACE_MS
            self.set(deadline_ms)
        else:
            self._grace_until_ms = None
            self._on_due()


LAST_VOTE_MS = 200  # a leader that has resigned stays so long at most to vote for its successor
ON_DISK = (
    PersistQuorumState,
    AppendLeaderChange,
    AppendValues,
    AppendControl,
    AppendFetched,
    TruncateTo,
    RestartLog,
    StoreSnapshotPiece,
    FinishSnapshot,
    DropSnapshot,
)
NOT_LEADING = "this node does not lead the quorum"
DISK_GONE = "this node's disk has failed or does not answer; it takes no part in the quorum any more"


class RaftLoop:
    """Everything happens on one event loop. After `stop` nothing happens any more."""

    def __init__(
        self,
        raft: Raft,
        *,
        log: MetadataLog,
        snapshots: SnapshotStore,
        served: ServedSnapshots,
        directory: MetadataDirectory,
        peers: Peers,
        proof: DeathProof,
        candidates: CandidateProbe,
        asks: OpenAsks,
        announcements: Announcements,
        clock: Clock,
        on_error: Callable[[Exception], None],
    ) -> None:
        """on_error: called with each exception of the core, of an effect and of a listener. It may call `stop`."""
        self.raft = raft
        self._log, self._snapshots, self._served, self._directory = log, snapshots, served, directory
        self._peers, self._proof, self._asks, self._announcements = peers, proof, asks, announcements
        self._candidates = candidates
        self._clock, self._on_error = clock, on_error
        self._effects = EffectQueue(self._perform, on_error)
        self._timer = LateTimer(clock, lambda: self.step(TimerFired()))
        self._resigned = asyncio.Event()
        self._followed = asyncio.Event()  # set while another node is known to lead
        self._persisting = False  # the effects are held until a state is on disk
        self._disk_gone = False
        self._unkept = False  # a state was not persisted: from then on nothing is told to other nodes
        self._stopped = False

    def step(self, event: RaftEvent) -> None:
        """Let the core decide, and start the effects."""
        if self._stopped:
            return
        try:
            effects = self.raft.step(event, self._clock.now_ms())
        except Exception as error:
            self._on_error(error)
            return
        self._effects.add(effects)
        self._timer.set(None if self._stopped else self.raft.deadline_ms())

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        """Append one atomic batch as the leader of `epoch`. Returns its exclusive end. Raises NotLeader."""
        try:
            effects = self.raft.step(AppendRequested(epoch, values), self._clock.now_ms())
        except AssertionError as error:
            self._on_error(error)
            raise
        end_offset = self.raft.end_offset
        self._effects.add(effects)
        return end_offset

    async def hand_over(self, timeout_ms: int) -> None:
        """Choose a successor and resign. Returns when it leads, or nobody leads in time, or after timeout_ms."""
        led = self.raft.role is RaftRole.LEADER
        self.step(ShutdownRequested())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._resigned.wait()
            if led:
                async with asyncio.timeout(LAST_VOTE_MS / 1000):
                    await self._followed.wait()
        except TimeoutError:
            pass  # a slow disk holds the effects; the others will notice by their fetch timeouts

    def give_up_disk(self) -> None:
        """The disk may never answer again: resign at once and for good. It may be called again.

        Nothing is written and nothing waits for the disk from now on. The node still hears of other leaders, because
        its broker hands its partitions over to the controller of now. A state that cannot be persisted is a promise
        that is not kept: from the first one on nothing is sent and nothing is answered.
        """
        self._disk_gone = True
        self.step(ShutdownRequested(at_once=True))
        if self._persisting:
            self._persisting, self._unkept = False, True
            self._effects.release()

    def stop(self) -> None:
        self._stopped = True
        self._timer.cancel()
        self._effects.stop()
        self._resigned.set()
        self._followed.set()

    def _perform(self, effect: RaftEffect) -> None:
        """Raises WorkerFull: then nothing has happened."""
        if self._disk_gone and isinstance(effect, ON_DISK):
            self._unkept = self._unkept or isinstance(effect, PersistQuorumState)
            return
        match effect:
            case PersistQuorumState(state):
                self._persist(state)
            case Send():
                if not self._unkept:
                    self._peers.call(effect, self.step)
            case Reply(token, message):
                if self._unkept:
                    self._asks.refuse(token, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, DISK_GONE))
                else:
                    self._asks.answer(token, message)
            case ReadForFetch(token, offset, max_bytes, upper_bound):
                self._log.read(offset, max_bytes, upper_bound, lambda data: self.step(RecordsRead(token, data)))
            case AppendLeaderChange() | AppendValues() | AppendControl() | AppendFetched():
                self._log.append(effect, self._clock.wall_ms(), self._on_written, self._on_synced)
            case TruncateTo(end_offset):
                self._log.truncate_to(end_offset, lambda end: self.step(LogTruncated(end)))
            case RestartLog(snapshot):
                self._log.restart_at(snapshot.offset, lambda end: self.step(LogTruncated(end)))
            case ReadSnapshot() | StoreSnapshotPiece() | FinishSnapshot() | DropSnapshot():
                self._perform_on_snapshots(effect)
            case RecordsRegained():
                self._directory.forget_loss(self._on_error)
            case ProbeCandidate():
                self._candidates.ask(effect, self.step)
            case MembershipSettled():
                self._directory.note_joined(self._on_error)
            case KRaftVersionAnswered(token, ErrorCode.NONE) | LeadershipConfirmed(token, True):
                self._asks.answer(token, None)
            case KRaftVersionAnswered(token, code, text):
                self._asks.refuse(token, ApiError(code, text))
            case LeadershipConfirmed(token):
                self._asks.refuse(token, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, NOT_LEADING))
            case ProbeLeader(node_id, epoch):
                self._proof.suspect(node_id, epoch)
            case ShutdownFinished():
                self._resigned.set()
            case LeaderChanged(None) if self._disk_gone and self._followed.is_set():
                pass  # a node that asks nobody any more hands its partitions over to the controller that it knew
            case LeaderChanged(leader_id):
                if leader_id not in (None, self.raft.node_id):
                    self._followed.set()
                else:
                    self._followed.clear()
                self._announcements.announce(effect)
            case HighWatermark() | LeadershipClaimed() | LeadershipLost() | HandOverBegun() | SnapshotInstalled():
                self._announcements.announce(effect)

    def _perform_on_snapshots(self, effect: ReadSnapshot | StoreSnapshotPiece | FinishSnapshot | DropSnapshot) -> None:
        match effect:
            case ReadSnapshot(token, snapshot, position, max_bytes):
                answer = lambda size, data: self.step(SnapshotRead(token, size, data))  # noqa: E731
                self._served.read(snapshot, position, max_bytes, answer)
            case StoreSnapshotPiece(snapshot, position, data):
                stored = lambda size: self.step(SnapshotPieceStored(snapshot, size))  # noqa: E731
                self._snapshots.store_piece(snapshot, position, data, stored)
            case FinishSnapshot(snapshot):
                self._snapshots.finish(snapshot, lambda heading: self.step(_finished(snapshot, heading)))
            case DropSnapshot(snapshot):
                self._snapshots.drop(snapshot)

    def _on_written(self, end_offset: Offset) -> None:
        self.step(LogWritten(end_offset))

    def _on_synced(self, end_offset: Offset) -> None:
        self.step(LogSynced(end_offset))

    def _persist(self, state: QuorumState) -> None:
        """The queue goes on when `state` is durable."""
        self._directory.persist(state, self._on_persisted)
        self._persisting = True
        self._effects.hold()

    def _on_persisted(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._on_error(outcome.error)
        elif self._persisting:
            self._persisting = False
            self._effects.release()


def _finished(snapshot: SnapshotId, heading: SnapshotHeading | None) -> SnapshotFinished:
    if heading is None:
        return SnapshotFinished(snapshot, is_intact=False)
    return SnapshotFinished(snapshot, True, heading.kraft_version, heading.voters)
