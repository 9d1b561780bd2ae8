"""Which member of a consumer group could take a unit for its own, from when to when, and whether that was right.

A member of the consumer protocol owns a unit from the answer that gives it until it gives the unit up, or until its
session has run out since it sent the last heartbeat that was answered: its coordinator heard of it later than that.
A coordinator that loads answers each heartbeat of the classic protocol that all is well, as Kafka's does, and knows
nobody yet. So such an answer counts only if it comes before the session has run out.

- group-units-shared (12): no unit has two owners at a time.
- group-owner-fenced (17): no member commits for a unit that another one owns, or has owned since. An answer that comes
  too late to be a claim gives the member the unit all the same: its session may not have run out at its coordinator.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen.checkers.findings import Finding


@dataclass(slots=True)
class Claim:
    """until_ns: exclusive. A claim that ends before it begins is none: the answer came too late."""

    unit: int
    member: str
    from_ns: int
    until_ns: int


class Committed(NamedTuple):
    """A commit that was acknowledged."""

    unit: int
    member: str
    invoked_ns: int


@dataclass(slots=True)
class OwnerHistory:
    claims: list[Claim] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)


class Claims:
    """What one member takes for its own now. session_ns: for how long, since the last heartbeat that was answered."""

    def __init__(self, history: OwnerHistory, now_ns: Callable[[], int], session_ns: int) -> None:
        self._history, self._now_ns, self._session_ns = history, now_ns, session_ns
        self._claims: dict[int, Claim] = {}  # by unit
        self._ends_ns: dict[int, int] = {}  # of units that are to be given up: when that has to be done

    @property
    def units(self) -> set[int]:
        return set(self._claims)

    def take(self, units: Iterable[int], member: str, sent_ns: int) -> None:
        """sent_ns: when the request was sent whose answer gives them. Units that it has already are not changed."""
        for unit in units:
            self._ends_ns.pop(unit, None)
            if unit not in self._claims:
                claim = self._claims[unit] = Claim(unit, member, self._now_ns(), sent_ns + self._session_ns)
                self._history.claims.append(claim)

    def extend(self, sent_ns: int) -> None:
        until_ns = min([sent_ns + self._session_ns, *self._ends_ns.values()])
        for claim in self._claims.values():
            claim.until_ns = until_ns

    def extend_in_time(self, sent_ns: int) -> None:
        """`extend`, by an answer that a coordinator which loads may have given: not once the session has run out."""
        if all(self._now_ns() < claim.until_ns for claim in self._claims.values()):
            self.extend(sent_ns)

    def ends(self, unit: int, at_ns: int) -> None:
        """It has to be given up by then: a member that does not loses all that it has."""
        self._ends_ns.setdefault(unit, at_ns)
        for claim in self._claims.values():
            claim.until_ns = min(claim.until_ns, self._ends_ns[unit])

    def give_up(self, units: Iterable[int]) -> None:
        for unit in units:
            self._ends_ns.pop(unit, None)
            claim = self._claims.pop(unit)
            claim.until_ns = min(claim.until_ns, self._now_ns())

    def give_up_all(self) -> None:
        self.give_up(sorted(self._claims))

    def committed(self, unit: int, member: str, invoked_ns: int) -> None:
        self._history.committed.append(Committed(unit, member, invoked_ns))


def check_owners(history: OwnerHistory) -> list[Finding]:
    by_unit: dict[int, list[Claim]] = {}
    for claim in sorted(history.claims, key=lambda one: one.from_ns):
        by_unit.setdefault(claim.unit, []).append(claim)
    return [*_shared(by_unit), *_fenced(by_unit, history.committed)]


def _is_one(claim: Claim) -> bool:
    return claim.from_ns < claim.until_ns


def _shared(by_unit: dict[int, list[Claim]]) -> Iterator[Finding]:
    for claims in by_unit.values():
        longest: dict[str, Claim] = {}  # by member: the one that ends last
        for claim in filter(_is_one, claims):
            for member, other in longest.items():
                if member != claim.member and other.until_ns > claim.from_ns:
                    yield Finding("group-units-shared", f"{claim} while {other}")
            if claim.member not in longest or claim.until_ns > longest[claim.member].until_ns:
                longest[claim.member] = claim


def _fenced(by_unit: dict[int, list[Claim]], committed: list[Committed]) -> Iterator[Finding]:
    for commit in committed:
        claims = by_unit.get(commit.unit, [])
        at = bisect_left(claims, commit.invoked_ns, key=lambda one: one.from_ns)
        before = (one for one in reversed(claims[:at]) if _is_one(one) or one.member == commit.member)
        last = next(before, None)
        if last is not None and last.member != commit.member:
            yield Finding("group-owner-fenced", f"{commit} was acknowledged behind {last}")
