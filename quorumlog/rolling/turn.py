"""Of several rolls of one cluster one goes: the one whose mark is the first in the cluster's metadata. Pure.

Two rolls that begin at the same moment both see a cluster that is whole, and each would restart a node. So a roll
appends a mark to a list (`rolls.under.way` of all brokers) and goes once it sees its own one first.

Invariants:
- The controller appends, so all see the marks in one order. Only its roll takes a mark away, or an operator who says
  that this roll has ended (`instead_of`). So who has seen its mark first goes alone until then, however old the
  metadata that it saw.
- A roll before may have ended with its node away. So pictures count from the metadata on that had the own mark: from
  the high watermark that the quorum told after the mark was committed.
- A mark has no time after which it expires: the command of a roll that has died may still run.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import Offset
from quorumlog.rolling.picture import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Append the mark. instead_of: a mark that is taken away first; empty: none."""

    mark: str
    instead_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Take the mark away. The roll has ended whether this succeeds or not."""

    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNow:
    """reason: a sentence. is_over: the roll ends; False: it waits, for some time."""

    reason: str
    is_over: bool = False


class Turn:
    """mark: empty: no other roll is looked for."""

    def __init__(self, mark: str, instead_of: str = "") -> None:
        self.mark = mark
        self._instead_of = instead_of
        self._since: Offset = -1  # of the metadata from which on pictures count
        self.is_claimed = False
        self.was_first = False

    def claim(self) -> Claim | None:
        """None: there is nothing more to claim."""
        if not self.mark or self.is_claimed:
            return None
        self.is_claimed = True
        return Claim(mark=self.mark, instead_of=self._instead_of)

    def give_up(self) -> None:
        """The cluster does not know of marks: the roll goes without."""
        self.mark, self.is_claimed = "", False

    def look(self, picture: Picture) -> NotNow | None:
        """None: it is this roll's turn. picture: asked for after the claim was answered."""
        if not self.mark:
            return None
        assert self.is_claimed
        if self._since < 0:
            self._since = picture.high_watermark
        if self.mark not in picture.rolls:
            why = "has been taken away, or is not seen" if self.was_first else "is not seen yet"
            return NotNow(reason=f"the mark {self.mark} of this roll {why} in {', '.join(picture.rolls) or 'no marks'}")
        if picture.rolls[0] != self.mark:
            return NotNow(reason=under_way(picture.rolls[0]), is_over=True)
        self.was_first = True
        if self._since < 0:
            return NotNow(reason="the quorum has not told its high watermark")
        if min(picture.nodes_offset, picture.topics_offset) < self._since:
            return NotNow(reason=f"a broker is behind: it tells metadata of before offset {self._since}")
        return None


def under_way(mark: str) -> str:
    return f"another roll is under way: {mark} (--instead-of {mark} if it has died)"
