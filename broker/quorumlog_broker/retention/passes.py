"""When a pass of retention over the replicas of one log directory begins, and in which slices it goes. Pure.

FIND (slices of replicas) -> NOTE (once, if anything expired) -> RETIRE (slices of planned logs, until each is done)

No slice is long: not on the node's loop, which makes it, nor in the directory's writer, where appends wait behind it. A
slice that fails is left out; the next pass looks at its logs again.

The first pass comes `log.initial.task.delay.ms` after the start (Kafka's `LogManager`), or one interval if that is
less; each other one `log.retention.check.interval.ms` after the last one has ended.

The wall clock of a machine may jump. A jump ahead would let everything go at once, on the followers too, that a topic
keeps by time. So a clock that is suddenly ahead of the time that has passed is not believed until the next pass: until
then the time goes on as before. A clock that is behind only keeps records longer, and is believed at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from quorumlog.ids import Offset
from quorumlog_broker.partition.key import PartitionKey

MAX_JUMP_MS = 60_000  # by so much the wall clock may be ahead of the time that has passed since the last pass


class RetentionSchedule:
    """interval_ms: between two passes. initial_delay_ms: before the first one. now_ms: monotonic, at the start."""

    def __init__(self, interval_ms: int, now_ms: int, *, initial_delay_ms: int) -> None:
        self.interval_ms = interval_ms
        self.due_ms = now_ms + min(initial_delay_ms, interval_ms)
        self._trusted: tuple[int, int] | None = None  # monotonic and wall time of the last pass
        self._is_doubted = False  # the wall clock was ahead at the last pass

    def begin(self, now_ms: int, wall_ms: int) -> int:
        """A pass begins. Returns the wall time, in ms, by which it judges."""
        trusted = wall_ms
        if self._trusted is not None:
            expected = self._trusted[1] + now_ms - self._trusted[0]
            is_ahead = wall_ms > expected + MAX_JUMP_MS
            if is_ahead and not self._is_doubted:
                trusted = expected
            self._is_doubted = is_ahead and not self._is_doubted
        self._trusted = (now_ms, trusted)
        return trusted

    def ended(self, now_ms: int) -> None:
        """The pass is over."""
        self.due_ms = now_ms + self.interval_ms


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
