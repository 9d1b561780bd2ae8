"""Histories for the checker: made by one sequential topic, whose operations overlap at random; and a dumber checker."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from jepsen.linear.checker import Model
from jepsen.linear.models import ABSENT, CREATE, DELETE, DELETE_ID, EXISTS, FIND, READ, SET
from jepsen.linear.operation import OK, Operation

KINDS = (CREATE, DELETE, DELETE_ID, SET, FIND, READ)
_NARROW_NS = 250  # to each side of the effect; operations begin every 100 ns


class SequentialTopic:
    """One topic as a person would write it down."""

    def __init__(self) -> None:
        self.id, self.value, self._made = "", "", 0

    def apply(self, kind: str, argument: str) -> str:
        if kind == CREATE:
            if self.id:
                return EXISTS
            self._made += 1
            self.id, self.value = f"id{self._made}", ""
            return self.id
        if not self.id or (kind == DELETE_ID and argument != self.id):
            return ABSENT
        if kind in (DELETE, DELETE_ID):
            self.id, self.value = "", ""
            return OK
        if kind == SET:
            self.value = argument
            return OK
        return self.id if kind == FIND else self.value


def good_history(
    rng: random.Random, size: int, *, open_share: float = 0.1, overlap_ns: int = _NARROW_NS
) -> list[Operation]:
    """Each operation takes effect at a point between its call and its answer; some answers are lost.

    overlap_ns: at most so long before and after its effect; an operation takes effect every 100 ns.
    """
    topic, operations = SequentialTopic(), []
    for number in range(size):
        at_ns = 100 * number
        kind = rng.choice(KINDS)
        argument = {SET: f"v{number}", DELETE_ID: topic.id or "id1"}.get(kind, "")
        is_open = kind not in (FIND, READ) and rng.random() < open_share
        takes_effect = not is_open or rng.random() < 0.5
        answer = topic.apply(kind, argument) if takes_effect else ""
        operations.append(
            Operation(
                number=number,
                process=f"p{number % 3}",
                kind=kind,
                argument=argument,
                answer=None if is_open else answer,
                invoked_ns=at_ns - rng.randrange(overlap_ns),
                returned_ns=-1 if is_open else at_ns + rng.randrange(overlap_ns),
            )
        )
    rng.shuffle(operations)
    return operations


def worse(rng: random.Random, operations: Sequence[Operation]) -> list[Operation]:
    """The same with one answer changed: sometimes still possible, mostly not."""
    place = rng.randrange(len(operations))
    one = operations[place]
    answers = {CREATE: (EXISTS, "id1", "id2"), FIND: (ABSENT, "id1", "id2"), READ: (ABSENT, "", "v0", "v1")}
    answer = rng.choice(answers.get(one.kind, (OK, ABSENT)))
    changed = replace(one, answer=answer, returned_ns=max(one.returned_ns, one.invoked_ns))
    return [*operations[:place], changed, *operations[place + 1 :]]


def by_trying_all(model: Model[object], operations: Sequence[Operation]) -> bool:
    """The second answer: every order of every choice of open operations. For at most seven operations."""
    answered = [one for one in operations if not one.is_open]
    unsure = [one for one in operations if one.is_open]
    for choice in range(1 << len(unsure)):
        chosen = answered + [one for place, one in enumerate(unsure) if choice >> place & 1]
        if any(_explains(model, order) for order in permutations(chosen)):
            return True
    return False


def _explains(model: Model[object], order: Sequence[Operation]) -> bool:
    state: object | None = model.initial
    for place, one in enumerate(order):
        if any(not later.is_open and later.returned_ns < one.invoked_ns for later in order[place + 1 :]):
            return False
        state = model.after(state, one)
        if state is None:
            return False
    return True
