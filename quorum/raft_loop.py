"""The loop around the core: events in, effects out, performed in order.

Effects wait in one queue. PersistQuorumState holds the queue until the state is on disk. Every other effect is started
at once, and its completion is an event. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from quorum.announcements import Announcements
from quorum.death_proof import DeathProof
from quorum.effect_queue import EffectQueue
from quorum.late_timer import LateTimer
from quorum.metadata_directory import MetadataDirectory
from quorum.metadata_log import MetadataLog
from quorum.open_requests import OpenRequests
from quorum.peers import Peers
from quorum.raft import (
    AppendFetched,
    AppendLeaderChange,
    AppendRequested,
    AppendValues,
    HighWatermark,
    LeaderChanged,
    LeadershipClaimed,
    LeadershipLost,
    LogSynced,
    LogTruncated,
    LogWritten,
    PersistQuorumState,
    ProbeLeader,
    QuorumState,
    Raft,
    RaftEffect,
    RaftEvent,
    ReadForFetch,
    RecordsRead,
    RecordsRegained,
    Reply,
    Send,
    ShutdownFinished,
    ShutdownRequested,
    TimerFired,
    TruncateTo,
)
from quorumlog.clock import Clock
from quorumlog.ids import Epoch, Offset
from storage.writer import Outcome


class RaftLoop:
    """Everything happens on one event loop. After `stop` nothing happens any more."""

    def __init__(
        self,
        raft: Raft,
        *,
        log: MetadataLog,
        directory: MetadataDirectory,
        peers: Peers,
        proof: DeathProof,
        requests: OpenRequests,
        announcements: Announcements,
        clock: Clock,
        on_error: Callable[[Exception], None],
    ) -> None:
        """on_error: called with each exception of the core, of an effect and of a listener. It may call `stop`."""
        self.raft = raft
        self._log, self._directory = log, directory
        self._peers, self._proof, self._requests, self._announcements = peers, proof, requests, announcements
        self._clock, self._on_error = clock, on_error
        self._effects = EffectQueue(self._perform, on_error)
        self._timer = LateTimer(clock, lambda: self.step(TimerFired()))
        self._resigned = asyncio.Event()
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
        """Resign. Returns when another leader is known, when all voters acknowledged it, or after timeout_ms."""
        self.resign()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._resigned.wait()
        except TimeoutError:
            pass  # a slow disk holds the effects; the others will notice by their fetch timeouts

    def resign(self) -> None:
        """Give up leadership for good, and do not stand again. It may be called again."""
        self.step(ShutdownRequested())

    def stop(self) -> None:
        self._stopped = True
        self._timer.cancel()
        self._effects.stop()
        self._resigned.set()

    def _perform(self, effect: RaftEffect) -> None:
        """Raises WorkerFull: then nothing has happened."""
        match effect:
            case PersistQuorumState(state):
                self._persist(state)
            case Send():
                self._peers.call(effect, self.step)
            case Reply(token, message):
                self._requests.answer(token, message)
            case ReadForFetch(token, offset, max_bytes, upper_bound):
                self._log.read(offset, max_bytes, upper_bound, lambda data: self.step(RecordsRead(token, data)))
            case AppendLeaderChange() | AppendValues() | AppendFetched():
                self._log.append(effect, self._clock.wall_ms(), self._on_written, self._on_synced)
            case TruncateTo(end_offset):
                self._log.truncate_to(end_offset, lambda end: self.step(LogTruncated(end)))
            case RecordsRegained():
                self._directory.forget_loss(self._on_error)
            case ProbeLeader(node_id, epoch):
                self._proof.suspect(node_id, epoch)
            case ShutdownFinished():
                self._resigned.set()
            case HighWatermark() | LeaderChanged() | LeadershipClaimed() | LeadershipLost():
                self._announcements.announce(effect)

    def _on_written(self, end_offset: Offset) -> None:
        self.step(LogWritten(end_offset))

    def _on_synced(self, end_offset: Offset) -> None:
        self.step(LogSynced(end_offset))

    def _persist(self, state: QuorumState) -> None:
        """The queue goes on when `state` is durable."""
        self._directory.persist(state, self._on_persisted)
        self._effects.hold()

    def _on_persisted(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._on_error(outcome.error)
        else:
            self._effects.release()
