"""Confirmed reads: a leader answers a read only after a majority has followed it since the read began (Raft 6.4).

A leader that is cut off learns of its successor late. Until then it must not answer from its own state. So each read
begins a round: parked fetches of the voters are answered at once, and the read is confirmed when the
fetches of a majority, the leader included, name its round. That costs one round trip and needs no clock: the number
of a round reaches a voter after the read began, and a voter that names it was then still in this leader's epoch. The
arrival of a fetch alone proves nothing, because the network may have delayed it.

A read also waits until the first record of the epoch is committed: only then does the leader know all that is
committed (Raft 5.4.2).

The read rounds of one leadership: which reads wait, and for which round. Pure bookkeeping.

A round has a number. The leader names the newest one in each answer to a fetch, and a voter's next fetch names the
newest one that it was told. So a fetch that names round r was sent after round r began.

A voter of software before rounds names none (UNKNOWN). Its fetch counts for the newest round when it arrives, although
it may have been sent before: without that no read would end while a cluster is upgraded (decision 30).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from quorumlog.ids import NodeId
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import LeadershipConfirmed
from quorumlog_quorum.raft.leading import serve_parked
from quorumlog_quorum.raft.roles import Leader

NONE_TOLD = -1  # named by a voter that this leader has told no round yet
UNKNOWN = 0  # named by a voter whose software knows no rounds


class _Waiting(NamedTuple):
    round: int
    token: int


class ReadRounds:
    def __init__(self, voters: tuple[NodeId, ...]) -> None:
        """voters: all but the leader."""
        self.newest = 0  # 0: no round has begun in this leadership
        self._seen: dict[NodeId, int] = dict.fromkeys(voters, 0)  # the newest round that each voter has named
        self._waiting: deque[_Waiting] = deque()  # their rounds rise

    @property
    def awaited(self) -> int:
        """The newest round that a read waits for; 0: none waits."""
        return self._waiting[-1].round if self._waiting else 0

    def begin(self, token: int) -> None:
        """A read that waits for a round of its own."""
        self.newest += 1
        self._waiting.append(_Waiting(self.newest, token))

    def begin_without_read(self) -> int:
        self.newest += 1
        return self.newest

    def on_named(self, voter: NodeId, number: int) -> None:
        """A fetch of this voter names this round. One that never began proves nothing."""
        number = self.meant(number)
        if number <= self.newest:
            self._seen[voter] = max(number, self._seen.get(voter, 0))

    def meant(self, number: int) -> int:
        """The round for which a fetch counts that names this one; 0: for none."""
        return self.newest if number == UNKNOWN else max(0, number)

    def seen_by(self, voter: NodeId) -> int:
        return self._seen.get(voter, 0)

    def answered_by(self, voters: tuple[NodeId, ...], required: int) -> int:
        """The newest round that `required` of these voters have named. required: 0 or more, without the leader."""
        if required == 0:
            return self.newest
        seen = sorted((self.seen_by(voter) for voter in voters), reverse=True)
        return seen[required - 1]

    def take_confirmed(self, number: int) -> list[int]:
        """The tokens of the reads that wait for this round or an earlier one, in their order."""
        taken = []
        while self._waiting and self._waiting[0].round <= number:
            taken.append(self._waiting.popleft().token)
        return taken


def on_confirmation_requested(core: Core, token: int, now_ms: int) -> None:
    leader = core.role
    if not isinstance(leader, Leader):
        core.add_effect(LeadershipConfirmed(token, confirmed=False))
        return
    leader.rounds.begin(token)
    confirm_reads(core)
    serve_parked(core, now_ms)


def confirm_reads(core: Core) -> None:
    """A voter has named a round, or the high watermark may have passed the epoch's first record."""
    leader = core.role
    assert isinstance(leader, Leader)
    if not leader.rounds.awaited or core.high_watermark <= leader.epoch_start_offset:
        return
    others = tuple(leader.replicas.voters)
    confirmed = leader.rounds.answered_by(others, leader.replicas.majority - leader.replicas.leader_counts)
    for token in leader.rounds.take_confirmed(confirmed):
        core.add_effect(LeadershipConfirmed(token, confirmed=True))
