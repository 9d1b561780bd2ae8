"""What observers cost the leader of the quorum: processor time of its core for each commit, without any wire or disk.

Three voters and a number of observers. One commit is a change that the leader appends and syncs, the fetches of two
voters that get it and acknowledge it, and those of every observer: one is answered with the records, the next with the
high watermark where the records did not carry it. The core takes the events that a real driver gives it, and its
deadline is asked for after each of them, as a driver does for its timer.

What counts is the difference that the observers make, and its growth: a hundred may not cost each of them a hundred.
"""

from __future__ import annotations

import random
import time
from itertools import count

from bench.measuring.report import Row
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import QuorumFetchRequest, QuorumFetchResponse, VoteResponse
from quorumlog_quorum.raft import (
    AppendRequested,
    LogState,
    LogSynced,
    LogWritten,
    Raft,
    RaftConfig,
    RaftEvent,
    RaftRole,
    ReadForFetch,
    RecordsRead,
    Reply,
    RequestReceived,
    ResponseReceived,
    Send,
    Started,
    TimerFired,
    VoterKey,
    VoterSet,
)
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.voters import Voter

VOTERS = (1, 2, 3)
KEY = VoterKey(VOTERS[0])
OBSERVERS = 100
COMMITS, QUICK_COMMITS = 200, 40
GOAL_MS = 1.0
ALONE_MS = 300  # between two commits that stand alone: observers are told of each at once
CLOSE_MS = 5  # between two that one client makes one after the other: observers are told in rounds
RECORD_BYTES = 100  # of what a read gives: the end of the records, as a number


class Leading:
    """A leader of three voters with its followers, all played by hand. Offsets are exclusive ends."""

    def __init__(self, observers: int) -> None:
        self._now_ms = 0
        self._tokens = count(1)
        self._asked: dict[int, int] = {}  # by token of a fetch: who asks
        self._known: dict[int, tuple[int, int]] = {}  # by node: the end of its log, the high watermark that it knows
        self.used_ns = 0
        self._followers = (*VOTERS[1:], *range(1_000, 1_000 + observers))
        self._raft = Raft(
            key=KEY,
            voters=VoterSet(Voter(node_id=one, endpoint=Endpoint(name="I", host="h", port=one)) for one in VOTERS),
            config=RaftConfig(),
            rng=random.Random(1),
            log=LogState(start=0, end=0, epochs=()),
            saved=QuorumState(epoch=1, voted=KEY),
        )
        self._elect()
        for node in self._followers:
            self._known[node] = (0, -1)
            self._fetch(node)

    def commit(self, gap_ms: int) -> None:
        """One change, so long after the last one, until every voter has its next fetch parked; if it stands alone,
        every observer, too."""
        self._now_ms += gap_ms
        before_ns, due_ms = self.used_ns, self._raft.deadline_ms()
        if due_ms is not None and due_ms <= self._now_ms:
            self._give(TimerFired())
        if gap_ms == ALONE_MS:
            self.used_ns = before_ns  # fetches that were answered with nothing are no cost of a commit
        self._give(AppendRequested(self._raft.core.epoch, [bytes(RECORD_BYTES)]))
        self._settle()
        end = self._raft.core.log.accepted_end
        assert self._raft.core.high_watermark == end, f"{self._raft.core.high_watermark} is not {end}"
        told = self._known if gap_ms == ALONE_MS else VOTERS[1:]
        assert all(self._known[node][0] == end for node in told), "a follower has not learnt of the commit"

    def _elect(self) -> None:
        """It resumes the candidacy that it had noted, and another voter grants it."""
        asked = [one for one in self._raft.step(Started(), 0) if isinstance(one, Send)]
        granted = VoteResponse(leader_epoch=self._raft.core.epoch, vote_granted=True)
        self._raft.step(ResponseReceived(asked[0].correlation, granted), 0)
        assert self._raft.core.role.role is RaftRole.LEADER
        self._settle()

    def _settle(self) -> None:
        """The disk has written and synced all that was appended."""
        self._give(LogWritten(self._raft.core.log.accepted_end))
        self._give(LogSynced(self._raft.core.log.accepted_end))

    def _fetch(self, node: int) -> None:
        token, (end, high_watermark) = next(self._tokens), self._known[node]
        self._asked[token] = node
        request = QuorumFetchRequest(
            replica_id=node,
            current_leader_epoch=self._raft.core.epoch,
            fetch_offset=end,
            last_fetched_epoch=self._raft.core.epoch if end else -1,
            max_wait_ms=500,
            max_bytes=1 << 20,
            high_watermark=high_watermark,
        )
        self._give(RequestReceived(token, request))

    def _give(self, event: RaftEvent) -> None:
        """The effects are performed after the measured step; what they lead to is measured in its turn."""
        before_ns = time.thread_time_ns()
        effects = self._raft.step(event, self._now_ms)
        self._raft.deadline_ms()
        self.used_ns += time.thread_time_ns() - before_ns
        for effect in effects:
            if isinstance(effect, ReadForFetch):
                self._give(RecordsRead(effect.token, effect.upper_bound.to_bytes(RECORD_BYTES, "big")))
            elif isinstance(effect, Reply) and isinstance(effect.message, QuorumFetchResponse):
                node, records = self._asked.pop(effect.token), effect.message.records
                end = int.from_bytes(records, "big") if records else self._known[node][0]
                self._known[node] = (end, effect.message.high_watermark)
                self._fetch(node)


def measure(rounds: int, *, quick: bool) -> list[Row]:
    commits = QUICK_COMMITS if quick else COMMITS
    rows = []
    for gap_ms, how in ((ALONE_MS, "that stands alone"), (CLOSE_MS, f"every {CLOSE_MS} ms")):
        alone, some, many = [], [], []
        for _ in range(rounds):
            alone.append(_per_commit_ms(0, commits, gap_ms))
            some.append(_per_commit_ms(OBSERVERS, commits, gap_ms))
            many.append(_per_commit_ms(4 * OBSERVERS, commits, gap_ms))
        added = [with_them - without for with_them, without in zip(some, alone, strict=True)]
        growth = [(most - without) / more for most, without, more in zip(many, alone, added, strict=True)]
        rows += [
            Row(name=f"core of the leader, a commit {how}", unit="ms", rounds=alone),
            Row(name=f"  {OBSERVERS} observers add", unit="ms", rounds=added, goal=GOAL_MS, at_least=False),
            Row(name=f"  {4 * OBSERVERS} observers add, of that (4: in line)", unit="times", rounds=growth),
        ]
    return rows


def _per_commit_ms(observers: int, commits: int, gap_ms: int) -> float:
    leading = Leading(observers)
    leading.commit(ALONE_MS)
    before_ns = leading.used_ns
    for _ in range(commits):
        leading.commit(gap_ms)
    return (leading.used_ns - before_ns) / 1e6 / commits
