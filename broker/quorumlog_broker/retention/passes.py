"""One pass of retention over the replicas of one log directory, cut into slices. Pure.

FIND (slices of replicas) -> NOTE (once, if anything expired) -> RETIRE (slices of planned logs, until each is done)

No slice is long: not on the node's loop, which makes it, nor in the directory's writer, where appends wait behind it. A
slice that fails is left out; the next pass looks at its logs again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from quorumlog.ids import Offset
from quorumlog_broker.partition.key import PartitionKey

FIND_LOGS = 100  # of one slice
RETIRE_LOGS = 4  # of one job of the writer ...
RETIRE_SEGMENTS = 16  # ... and of each of them; renaming one takes three calls


@dataclass(frozen=True, slots=True)
class Find:
    """Look for expired segments of these."""

    keys: tuple[PartitionKey, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Note all these starts, durably and with one write."""

    starts: dict[PartitionKey, Offset]


@dataclass(frozen=True, slots=True)
class Retire:
    """Move the starts of these some segments further."""

    starts: dict[PartitionKey, Offset]


Step = Find | Note | Retire


class RetentionPass:
    """Ask `next_step`, perform it, and tell the outcome, until it is None."""

    def __init__(self, keys: Iterable[PartitionKey]) -> None:
        self._unseen = deque(keys)
        self._planned: dict[PartitionKey, Offset] = {}
        self._is_noted = False

    def next_step(self) -> Step | None:
        """None: the pass is over."""
        if self._unseen:
            return Find(tuple(self._unseen.popleft() for _ in range(min(FIND_LOGS, len(self._unseen)))))
        if not self._planned:
            return None
        if not self._is_noted:
            return Note(dict(self._planned))
        return Retire({key: self._planned[key] for key in list(self._planned)[:RETIRE_LOGS]})

    def found(self, starts: dict[PartitionKey, Offset]) -> None:
        """The outcome of Find: those replicas that hold expired segments, and where they are to start."""
        assert not self._is_noted, "looked for more after the note"
        self._planned |= starts

    def noted(self) -> None:
        """The outcome of Note."""
        self._is_noted = True

    def retired(self, done: Sequence[PartitionKey]) -> None:
        """The outcome of Retire. done: those of which nothing is left to do; the others take turns."""
        for key in done:
            del self._planned[key]

    def failed(self, step: Step) -> None:
        """Nothing of this step need have happened."""
        match step:
            case Find():
                pass
            case Note():
                self._planned.clear()
            case Retire(starts):
                self.retired(list(starts))
            case _:
                assert_never(step)
