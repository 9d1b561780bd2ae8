"""One night: slice after slice, until nothing is left, the time is over, or somebody ends it. Starts nothing itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from jepsen.nightly.findings import findings_of
from jepsen.nightly.plan import Plan
from jepsen.nightly.state import MOST_OPEN, PROVED_NOTHING, Finding
from jepsen.nightly.work import Slice, as_typed


class Interrupted(Exception):
    """A signal has ended the night, and the slice under way, of which nothing is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """code: the exit code, negative for a signal; None: it was ended after its limit. output: the file of `lines`."""

    code: int | None
    took_s: float
    output: str
    lines: Iterable[str]


class Machine(Protocol):
    """Clock, tree, processes and files."""

    def seconds(self) -> float:
        """Real time from an unknown moment on; it never goes back."""

    def date(self) -> str:
        """For people."""

    def commit(self) -> str:
        """Of the tree as it is now, its changes included."""

    def run(self, one: Slice) -> Ended:
        """Returns when no process of the slice is left. Raises Interrupted, also if the signal came before."""

    def keep(self, plan: Plan) -> None:
        """Write the state and the report; both survive the end of this process."""

    def say(self, line: str) -> None:
        """Print a line of progress, with the time."""


class End(Enum):
    """Why a night is over."""

    DONE = "every chosen kind is done for this round"
    TIME = "the time is over"
    INTERRUPTED = "interrupted: the slice under way is lost, everything before it is kept"
    NEW_COMMIT = "the tree has another commit: begins again with its software"
    TOO_MANY = f"{MOST_OPEN} findings are open: look at them first"


def night(plan: Plan, machine: Machine, minutes: float | None) -> End:
    """minutes: no slice begins later, and the last one ends by itself; None: until every chosen kind is done once."""
    until_s = math.inf if minutes is None else machine.seconds() + minutes * 60
    for line in plan.adopt(machine.commit()):
        machine.say(line)
    if plan.is_done:
        plan.begin_round()
    machine.keep(plan)
    while True:
        if len(plan.state.open) >= MOST_OPEN:
            return End.TOO_MANY
        if machine.seconds() >= until_s:
            return End.TIME
        one = plan.next()
        if one is None:
            if minutes is None:
                return End.DONE
            plan.begin_round()
        elif machine.commit() != plan.state.commit:
            return End.NEW_COMMIT
        else:
            try:
                _carry_out(one, plan, machine)
            except Interrupted:
                return End.INTERRUPTED


def _carry_out(one: Slice, plan: Plan, machine: Machine) -> None:
    """Raises Interrupted."""
    machine.say(
        f"slice {one.number}, {one.kind}, begins (at most {one.limit_s / 60:.0f} minutes): {as_typed(one.command)}"
    )
    ended = machine.run(one)
    found = findings_of(one, ended.code, ended.lines)
    noted = plan.note(one, ended.took_s, found, ended.output, machine.date())
    machine.keep(plan)
    (work,) = (work for work in plan.works if work.name == one.kind)
    following = plan.next()
    machine.say(
        f"slice {one.number}, {one.kind}, ended after {ended.took_s:.0f} s: {verdict_of(noted)}; "
        f"{plan.state.of(one.kind).done:,} of {work.whole:,} {work.unit} are done; "
        f"next: {following.kind if following else 'nothing, this round is done'}"
    )
    for finding in noted:
        machine.say(f"  finding {finding.number}: {finding.what[-1].strip() if finding.what else 'no output'}")
        machine.say(f"  replay: {finding.replays[-1]}")


def verdict_of(findings: Sequence[Finding]) -> str:
    """In a few words."""
    nothing = sum(finding.verdict == PROVED_NOTHING for finding in findings)
    words = [f"{len(findings) - nothing} found"] if len(findings) > nothing else []
    words += [f"{nothing} proved nothing"] if nothing else []
    return ", ".join(words) or "nothing found"
