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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog_quorum.disk.metadata_directory import MetadataDirectory
from quorumlog_quorum.disk.metadata_log import Appending, MetadataLog
from quorumlog_quorum.node.announcements import Announcements
from quorumlog_quorum.node.candidate_probe import CandidateProbe
from quorumlog_quorum.node.commit_times import CommitTimes
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

    def __init__(self, perform: Mapping[type, Callable[[Any], None]], on_error: Callable[[Exception], None]) -> None:
        """perform: what starts an effect, by its type; raises WorkerFull if it did nothing and must be called again.

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
            self._perform[type(effect)](effect)
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
NOT_LEADING = "this node does not lead the quorum"
Actions = dict[type[RaftEffect], Callable[[Any], None]]
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
        self._raft = raft
        self._log, self._snapshots, self._served, self._directory = log, snapshots, served, directory
        self._peers, self._proof, self._asks, self._announcements = peers, proof, asks, announcements
        self._candidates = candidates
        self._clock, self._on_error = clock, on_error
        self._actions = self._on_disk() | self._elsewhere()
        assert self._actions.keys() == set(get_args(RaftEffect))
        self._effects = EffectQueue(self._actions, on_error)
        self._timer = LateTimer(clock, lambda: self.step(TimerFired()))
        self._resigned = asyncio.Event()
        self._followed = asyncio.Event()  # set while another node is known to lead
        self._persisting = False  # the effects are held until a state is on disk
        self._disk_gone = False
        self._unkept = False  # a state was not persisted: from then on nothing is told to other nodes
        self._stopped = False
        self.commit_times = CommitTimes()

    def step(self, event: RaftEvent) -> None:
        """Let the core decide, and start the effects."""
        if self._stopped:
            return
        try:
            effects = self._raft.step(event, self._clock.now_ms())
        except Exception as error:
            self._on_error(error)
            return
        self._effects.add(effects)
        self._timer.set(None if self._stopped else self._raft.deadline_ms())

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        """Append one atomic batch as the leader of `epoch`. Returns its exclusive end. Raises NotLeader."""
        try:
            effects = self._raft.step(AppendRequested(epoch, values), self._clock.now_ms())
        except AssertionError as error:
            self._on_error(error)
            raise
        end_offset = self._raft.core.log.accepted_end
        self.commit_times.appended(end_offset, self._clock.now_ms())
        self._effects.add(effects)
        return end_offset

    async def hand_over(self, timeout_ms: int) -> None:
        """Choose a successor and resign. Returns when it leads, or nobody leads in time, or after timeout_ms."""
        led = self._raft.core.role.role is RaftRole.LEADER
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
        undone = dict.fromkeys(self._on_disk(), self._leave_undone)
        self._actions |= undone | {PersistQuorumState: self._break_promise}
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

    def _on_disk(self) -> Actions:
        """How each effect on the node's disk is performed. Raises WorkerFull: then nothing has happened."""
        appends = (AppendLeaderChange, AppendValues, AppendControl, AppendFetched)
        return dict.fromkeys(appends, self._append) | {
            PersistQuorumState: self._persist,
            TruncateTo: self._truncate,
            RestartLog: self._restart_log,
            StoreSnapshotPiece: self._store_piece,
            FinishSnapshot: self._finish_snapshot,
            DropSnapshot: lambda effect: self._snapshots.drop(effect.snapshot),
        }

    def _elsewhere(self) -> Actions:
        """How every other effect is performed."""
        told = self._announcements
        return {
            Send: self._send,
            Reply: self._reply,
            ReadForFetch: self._read_for_fetch,
            ReadSnapshot: self._read_snapshot,
            RecordsRegained: lambda _: self._directory.forget_loss(self._on_error),
            MembershipSettled: lambda _: self._directory.note_joined(self._on_error),
            ProbeCandidate: lambda effect: self._candidates.ask(effect, self.step),
            ProbeLeader: lambda effect: self._proof.suspect(effect.node_id, effect.epoch),
            KRaftVersionAnswered: self._answer_upgrade,
            LeadershipConfirmed: self._answer_confirmation,
            ShutdownFinished: lambda _: self._resigned.set(),
            LeaderChanged: self._on_leader_changed,
            HighWatermark: self._on_high_watermark,
            LeadershipClaimed: told.on_claimed,
            LeadershipLost: self._on_leadership_lost,
            HandOverBegun: told.on_hand_over,
            SnapshotInstalled: told.on_installed,
        }

    # On the disk.

    def _leave_undone(self, _: RaftEffect) -> None:
        """The disk is gone."""

    def _break_promise(self, _: PersistQuorumState) -> None:
        self._unkept = True

    def _append(self, effect: Appending) -> None:
        self._log.append(effect, self._clock.wall_ms(), self._on_written, self._on_synced)

    def _truncate(self, effect: TruncateTo) -> None:
        self._log.truncate_to(effect.end_offset, self._on_truncated)

    def _restart_log(self, effect: RestartLog) -> None:
        self._log.restart_at(effect.snapshot.offset, self._on_truncated)

    def _store_piece(self, effect: StoreSnapshotPiece) -> None:
        snapshot = effect.snapshot
        stored = lambda size: self.step(SnapshotPieceStored(snapshot, size))  # noqa: E731
        self._snapshots.store_piece(snapshot, effect.position, effect.data, stored)

    def _finish_snapshot(self, effect: FinishSnapshot) -> None:
        snapshot = effect.snapshot
        self._snapshots.finish(snapshot, lambda heading: self.step(_finished(snapshot, heading)))

    def _persist(self, effect: PersistQuorumState) -> None:
        """The queue goes on when the state is durable."""
        self._directory.persist(effect.state, self._on_persisted)
        self._persisting = True
        self._effects.hold()

    # Elsewhere.

    def _send(self, effect: Send) -> None:
        if not self._unkept:
            self._peers.call(effect, self.step)

    def _reply(self, effect: Reply) -> None:
        if self._unkept:
            self._asks.refuse(effect.token, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, DISK_GONE))
        else:
            self._asks.answer(effect.token, effect.message)

    def _read_for_fetch(self, effect: ReadForFetch) -> None:
        token = effect.token
        read = lambda data: self.step(RecordsRead(token, data))  # noqa: E731
        self._log.read(effect.offset, effect.max_bytes, effect.upper_bound, read)

    def _read_snapshot(self, effect: ReadSnapshot) -> None:
        token = effect.token
        read = lambda size, data: self.step(SnapshotRead(token, size, data))  # noqa: E731
        self._served.read(effect.snapshot, effect.position, effect.max_bytes, read)

    def _answer_upgrade(self, effect: KRaftVersionAnswered) -> None:
        if effect.error_code is ErrorCode.NONE:
            self._asks.answer(effect.token, None)
        else:
            self._asks.refuse(effect.token, ApiError(effect.error_code, effect.text))

    def _answer_confirmation(self, effect: LeadershipConfirmed) -> None:
        if effect.confirmed:
            self._asks.answer(effect.token, None)
        else:
            self._asks.refuse(effect.token, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, NOT_LEADING))

    def _on_high_watermark(self, effect: HighWatermark) -> None:
        self.commit_times.committed(effect.offset, self._clock.now_ms())
        self._announcements.on_high_watermark(effect)

    def _on_leadership_lost(self, effect: LeadershipLost) -> None:
        self.commit_times.lost()
        self._announcements.on_lost(effect)

    def _on_leader_changed(self, effect: LeaderChanged) -> None:
        """A node that asks nobody any more hands its partitions over to the controller that it knew."""
        if effect.leader_id is None and self._disk_gone and self._followed.is_set():
            return
        if effect.leader_id not in (None, self._raft.core.node_id):
            self._followed.set()
        else:
            self._followed.clear()
        self._announcements.on_leader_changed(effect)

    # What the disk answers.

    def _on_written(self, end_offset: Offset) -> None:
        self.step(LogWritten(end_offset))

    def _on_synced(self, end_offset: Offset) -> None:
        self.step(LogSynced(end_offset))

    def _on_truncated(self, end_offset: Offset) -> None:
        self.step(LogTruncated(end_offset))

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
