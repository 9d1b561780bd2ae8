"""Cuts a failing run down, as long as the same finding comes back: a shorter run, fewer strikes, less of everything.

What can be cut is a list of `Axis`, which each profile makes for itself. Lists are cut by halves, then by ever smaller
parts (Zeller's ddmin). A smaller run may fail in another way; that does not count, because it may be another mistake.
Nothing is assumed about what fails: a run that was not tried is never the result. The number of tries and their time
are bounded, so the result is small, not smallest.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jepsen.sim.cuts import Cuts

MAX_TRIES = 80
LIMIT_S = 600.0  # of real time; a try that has begun ends
_END_SLACK_S = 2  # of a run after the moment of the finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of a seed: how long strikes may come, and what is taken out of it."""

    seconds: int
    cuts: Cuts


@dataclass(frozen=True, slots=True)
class Failure:
    """name: of the first finding; "" if there is none.

    at_s: when it was found, in the seconds of `Case`, from the first moment of a strike; -1: at the end.
    """

    name: str
    at_s: float = -1.0


Attempt = Callable[[Case], Failure]
Say = Callable[[str], None]
Fails = Callable[[Case, str], bool]  # tries a case; the words say for people what is left


class Axis(ABC):
    """One thing of which a run can have less."""

    @abstractmethod
    def cut(self, found: Callable[[], Case], fails: Fails) -> None:
        """Tries cases smaller than `found()`, which is what has failed last."""


@dataclass(frozen=True, slots=True)
class Number(Axis):
    """A number of `Cuts`. whole: without cuts. The smallest that fails is looked for from `least` upwards."""

    name: str
    whole: int
    least: int

    def cut(self, found: Callable[[], Case], fails: Fails) -> None:
        for value in range(self.least, self._now(found())):
            if fails(_with(found(), self.name, value), f"{value} {self.name}"):
                return

    def _now(self, case: Case) -> int:
        value: int | None = getattr(case.cuts, self.name)
        return self.whole if value is None else value


class Halves(Number):
    """The same for a number that may be large: it is halved while that fails."""

    def cut(self, found: Callable[[], Case], fails: Fails) -> None:
        while (now := self._now(found())) > self.least:
            if not fails(_with(found(), self.name, now // 2), f"{now // 2} {self.name}"):
                return


@dataclass(frozen=True, slots=True)
class Parts(Axis):
    """A list of `Cuts` that names what stays. whole: all names. kinds: of some; those of a kind may go together."""

    name: str
    whole: tuple[Any, ...]
    kinds: Mapping[Any, str] = field(default_factory=dict)

    def cut(self, found: Callable[[], Case], fails: Fails) -> None:
        if self._try((), found, fails):  # also where no part was met: a run that goes on may meet some
            return
        for kind in dict.fromkeys(self.kinds.values()):
            self._try(tuple(part for part in self._now(found()) if self.kinds.get(part) != kind), found, fails)
        pieces = 2
        while len(now := self._now(found())) > 1:
            length = -(-len(now) // pieces)
            if any(self._try(rest, found, fails) for rest in _without_one_piece(now, length)):
                pieces = max(2, pieces - 1)
            elif length == 1:
                return
            else:
                pieces = min(2 * pieces, len(now))

    def _try(self, rest: tuple[Any, ...], found: Callable[[], Case], fails: Fails) -> bool:
        return fails(_with(found(), self.name, rest), f"{len(rest)} of {len(self.whole)} {self.name}")

    def _now(self, case: Case) -> tuple[Any, ...]:
        kept: tuple[Any, ...] | None = getattr(case.cuts, self.name)
        return self.whole if kept is None else kept


class Shrinker:
    """found: the smallest case so far that failed as `failure` tells; tries: how many cases have run.

    clock_s: of real time.
    """

    def __init__(
        self,
        attempt: Attempt,
        found: Case,
        failure: Failure,
        say: Say = print,
        *,
        limit_s: float = LIMIT_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        assert failure.name
        self.found, self.failure, self.tries = found, failure, 0
        self._attempt, self._say, self._clock_s = attempt, say, clock_s
        self._until_s = clock_s() + limit_s
        self._tried = {found}

    def run(self, axes: Sequence[Axis]) -> Case:
        """Each axis again and again, until none of them gives anything."""
        before = None
        while before != self.found:
            before = self.found
            self._shorten()
            for axis in axes:
                axis.cut(lambda: self.found, self._fails)
        return self.found

    def _fails(self, case: Case, what: str) -> bool:
        """Whether it fails as before; then it is the smallest so far."""
        if case in self._tried or self.tries >= MAX_TRIES or self._clock_s() >= self._until_s:
            return False
        self._tried.add(case)
        self.tries += 1
        failure = self._attempt(case)
        if failure.name != self.failure.name:
            return False
        self.found, self.failure = case, failure
        self._say(f"  try {self.tries} of at most {MAX_TRIES}: still {failure.name} with {what}")
        return True

    def _shorten(self) -> None:
        """To the moment of the finding. What is found after the strikes may need fewer seconds of them."""
        now, at_s = self.found.seconds, self.failure.at_s
        if 0 <= at_s < now:
            self._last_for(min(now, int(at_s) + _END_SLACK_S))
            return
        while self._last_for(self.found.seconds // 2):
            pass

    def _last_for(self, seconds: int) -> bool:
        return seconds >= 1 and self._fails(replace(self.found, seconds=seconds), f"{seconds} s")


def _with(case: Case, name: str, value: object) -> Case:
    return replace(case, cuts=replace(case.cuts, **{name: value}))  # type: ignore[arg-type]


def _without_one_piece(parts: tuple[Any, ...], length: int) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(parts), length):
        yield parts[:start] + parts[start + length :]
