"""Cuts a failing plan down: a shorter run, fewer strikes, operations and nodes, as long as the same finding comes back.

Strikes are taken out by halves, then by ever smaller parts (Zeller's ddmin). A smaller plan may fail in another way;
that does not count, because it may be another mistake. The number of tries is bounded, so the result is small, not
smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from jepsen.sim.quorum.plan import Cuts

MAX_TRIES = 80  # a few seconds each, mostly less: a run ends at its first finding
_MIN_OPERATIONS = 1
_END_SLACK_S = 2  # of a run after the moment of the finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of a seed: how long strikes may come, and what is taken out of its plan."""

    seconds: int
    cuts: Cuts


@dataclass(frozen=True, slots=True)
class Failure:
    """name: of the first finding; "" if there is none. at_s: when it was found after the start; -1: at the end."""

    name: str
    at_s: float = -1.0


Try = Callable[[Case], Failure]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a plan holds before it is cut. blows: their numbers."""

    blows: tuple[int, ...]
    operations: int
    voters: int
    brokers: int


class Shrinker:
    """found: the smallest case that failed as `wanted`."""

    def __init__(self, attempt: Try, found: Case, wanted: Failure, size: Size, say: Say = print) -> None:
        self._attempt, self._say, self._size = attempt, say, size
        self.found, self._failure = found, wanted
        self.tries = 0

    def run(self) -> Case:
        self._shorten()
        self._cut_nodes()
        self._cut_blows()
        self._cut_operations()
        self._cut_nodes()
        self._cut_blows()
        return self.found

    def _fails(self, case: Case, what: str) -> bool:
        """Whether it fails as before; then it is the smallest so far."""
        if self.tries >= MAX_TRIES or case == self.found:
            return False
        self.tries += 1
        failure = self._attempt(case)
        if failure.name != self._failure.name:
            return False
        self.found, self._failure = case, failure
        self._say(f"  still {failure.name} with {what}")
        return True

    def _shorten(self) -> None:
        if self._failure.at_s >= 0:
            seconds = max(1, min(self.found.seconds, int(self._failure.at_s) + _END_SLACK_S))
            self._fails(replace(self.found, seconds=seconds), f"{seconds} s")

    def _cut_nodes(self) -> None:
        for brokers in range(self._now("brokers", self._size.brokers)):
            if self._fails(self._with(brokers=brokers), f"{brokers} brokers"):
                break
        for voters in range(1, self._now("voters", self._size.voters)):
            if self._fails(self._with(voters=voters), f"{voters} voters"):
                break

    def _cut_operations(self) -> None:
        while (now := self._now("operations", self._size.operations)) > _MIN_OPERATIONS:
            if not self._fails(self._with(operations=now // 2), f"{now // 2} operations"):
                break

    def _cut_blows(self) -> None:
        parts = 1
        while (blows := self._blows()) and parts <= len(blows):
            length = -(-len(blows) // parts)
            rests = [blows[:start] + blows[start + length :] for start in range(0, len(blows), length)]
            if any(self._fails(self._with(blows=rest), f"{len(rest)} strikes") for rest in rests):
                parts = max(1, parts - 1)
            elif parts == len(blows):
                break
            else:
                parts = min(2 * parts, len(blows))

    def _blows(self) -> tuple[int, ...]:
        kept = self.found.cuts.blows
        return self._size.blows if kept is None else kept

    def _now(self, name: str, whole: int) -> int:
        value: int | None = getattr(self.found.cuts, name)
        return whole if value is None else value

    def _with(self, **changes: object) -> Case:
        return replace(self.found, cuts=replace(self.found.cuts, **changes))  # type: ignore[arg-type]
