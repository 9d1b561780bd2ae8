"""The read rounds of one leadership: which reads wait, and for which round. Pure bookkeeping.

A round has a number. The leader names the newest one in each answer to a fetch, and a voter's next fetch names the
newest one that it was told. So a fetch that names round r was sent after round r began.

A voter of software before rounds names none (UNKNOWN). Its fetch counts for the newest round when it arrives, although
it may have been sent before: without that no read would end while a cluster is upgraded (decision 30).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from quorumlog.ids import NodeId

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
