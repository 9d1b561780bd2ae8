"""The search of Wing and Gong with Lowe's memory, for the operations of one key.

Sources: Wing and Gong, "Testing and verifying concurrent objects" (1993); Lowe, "Testing for linearizability" (2017).
A history is linearizable exactly if the operations of each key are (P-compositionality), so keys are checked one by
one.

The search takes the operation that may come next, asks the model, and goes on from the new state; it goes back where no
operation fits. A set of done operations and a state that were met once are not met again. An open operation takes
effect at any time after its call, or never. The work is bounded: a history that needs more is UNDECIDED, and a run that
is not decided has failed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from jepsen.linear.operation import Operation

MAX_STEPS = 300_000  # questions to the model, for one key: about a second

State = TypeVar("State", bound=Hashable)


class Model(Protocol[State]):
    """What one key does, one operation after another."""

    @property
    def initial(self) -> State: ...

    def after(self, state: State, operation: Operation) -> State | None:
        """The state after the operation took effect; None if it cannot do so here with the answer that it got."""


class Outcome(Enum):
    LINEARIZABLE = "linearizable"
    IMPOSSIBLE = "not linearizable"
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """steps: questions to the model. done: the longest order that was found; then none of `stuck` can follow.

    state: after that order.
    """

    outcome: Outcome
    steps: int
    done: tuple[Operation, ...] = ()
    stuck: tuple[Operation, ...] = ()
    state: object = None

    def __str__(self) -> str:
        if self.outcome is Outcome.LINEARIZABLE:
            return f"{self.outcome.value} ({self.steps} steps)"
        last = "; ".join(str(one) for one in self.done[-4:])
        refused = "; ".join(str(one) for one in self.stuck[:4])
        return (
            f"{self.outcome.value} ({self.steps} steps): after {last or 'nothing'} in {self.state} cannot be: {refused}"
        )


class _Entry:
    """A call or a return in the list of those that are not placed yet."""

    __slots__ = ("bit", "following", "operation", "previous", "returns")

    def __init__(self, operation: Operation | None, bit: int) -> None:
        self.operation = operation  # None: a return, or the head of the list
        self.bit = bit
        self.returns: _Entry | None = None  # of a call; None: it is open
        self.previous: _Entry | None = None
        self.following: _Entry | None = None


def check(model: Model[State], operations: Sequence[Operation], max_steps: int = MAX_STEPS) -> Verdict:
    """operations: all of one key, in any order."""
    return _Search(model, operations, max_steps).run()


class _Search(Generic[State]):
    def __init__(self, model: Model[State], operations: Sequence[Operation], max_steps: int) -> None:
        self._model, self._max_steps = model, max_steps
        self._head = _linked(operations)
        self._wanted = sum(1 << place for place, one in enumerate(operations) if not one.is_open)
        self._placed: list[tuple[_Entry, State]] = []  # calls in the order that is tried, with the state before each
        self._done = 0  # a bit for each placed operation
        self._steps = 0
        self._longest: tuple[tuple[Operation, ...], tuple[Operation, ...], State] = ((), (), model.initial)

    def run(self) -> Verdict:
        state = self._model.initial
        seen: set[tuple[int, State]] = set()
        entry = self._head.following
        while self._wanted & ~self._done:
            assert entry is not None, "an answered operation is never behind the end of the list"
            if entry.operation is None:  # a return: its call had to be placed before
                self._note(state)
                if not self._placed:
                    return self._verdict(Outcome.IMPOSSIBLE)
                entry, state = self._back()
                continue
            after = self._ask(state, entry.operation)
            if self._steps > self._max_steps:
                return self._verdict(Outcome.UNDECIDED)
            found = None if after is None else (self._done | entry.bit, after)
            if found is None or found in seen:
                entry = entry.following
                continue
            seen.add(found)
            self._placed.append((entry, state))
            self._done, state = found
            _lift(entry)
            entry = self._head.following
        return Verdict(Outcome.LINEARIZABLE, self._steps)

    def _ask(self, state: State, operation: Operation) -> State | None:
        self._steps += 1
        after = self._model.after(state, operation)
        return None if operation.is_open and after == state else after  # placing it there explains nothing

    def _back(self) -> tuple[_Entry | None, State]:
        """Undo the last placement. Returns the entry to go on with, and the state."""
        last, state = self._placed.pop()
        self._done &= ~last.bit
        _restore(last)
        return last.following, state

    def _note(self, state: State) -> None:
        if self._longest[1] and len(self._placed) <= len(self._longest[0]):
            return
        done = tuple(entry.operation for entry, _ in self._placed if entry.operation is not None)
        self._longest = (done, tuple(self._callable()), state)

    def _callable(self) -> list[Operation]:
        """What may come next: everything called before the first return."""
        found, entry = [], self._head.following
        while entry is not None and entry.operation is not None:
            found.append(entry.operation)
            entry = entry.following
        return found

    def _verdict(self, outcome: Outcome) -> Verdict:
        done, stuck, state = self._longest
        return Verdict(outcome, self._steps, done, stuck, state)


def _linked(operations: Sequence[Operation]) -> _Entry:
    """Calls and returns in the order of time, behind a head. At one time calls come first: they overlap."""
    events: list[tuple[int, int, int, _Entry]] = []
    for place, operation in enumerate(operations):
        call = _Entry(operation, 1 << place)
        events.append((operation.invoked_ns, 0, place, call))
        if not operation.is_open:
            call.returns = _Entry(None, 0)
            events.append((operation.returned_ns, 1, place, call.returns))
    head = last = _Entry(None, 0)
    for *_, entry in sorted(events, key=lambda event: event[:3]):
        last.following, entry.previous = entry, last
        last = entry
    return head


def _lift(call: _Entry) -> None:
    """Take a call and its return out of the list."""
    for entry in (call, call.returns):
        if entry is not None:
            assert entry.previous is not None
            entry.previous.following = entry.following
            if entry.following is not None:
                entry.following.previous = entry.previous


def _restore(call: _Entry) -> None:
    """Undo `_lift`. The entries remember their neighbours; the order of undoing is the reverse of lifting."""
    for entry in (call.returns, call):
        if entry is not None:
            assert entry.previous is not None
            entry.previous.following = entry
            if entry.following is not None:
                entry.following.previous = entry
