"""What the members of a consumer group saw, and whether it was right.

A unit is a partition that the group divides between its members. Its owner fetches the committed offset, and commits
higher and higher ones, one at a time; after an answer that says nothing it commits no more as this member. So:

- group-commit-lost: a fetch shows every commit that was acknowledged before it began, or a later one.
- group-offset-undone: a fetch shows what an earlier fetch had shown, or more.
- group-offset-invented: a fetch shows what somebody has tried to commit.
- group-deleted-offset-returns: a fetch shows nothing that an OffsetDelete took which was acknowledged before it began.
- group-commit-fenced: no member commits in a generation once a member of a later one has its assignment.
- group-two-owners: in a generation, each unit belongs to one member.
- group-assignment-changed: a member gets what the leader of its generation sent for it.
- group-two-leaders (7): the members of a generation were told the same leader and the same protocol.

A static member has a new id after each start; what it was told counts for its instance. A group without members and
offsets is forgotten, and begins again with generation 1: that is another group.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen.checkers.findings import Finding

NOTHING = -1  # a fetched offset where none is committed
OPEN_NS = 1 << 62  # the end of a call whose outcome is not known


@dataclass(slots=True)
class Commit:
    """ended_ns: OPEN_NS unless it was acknowledged, or certainly refused. staged_ns: when a transaction held it that is
    yet to end; OPEN_NS if that is not known, or it is of none."""

    unit: int
    offset: int
    generation: int
    invoked_ns: int
    ended_ns: int = OPEN_NS
    acked: bool = False
    staged_ns: int = OPEN_NS

    @property
    def written_ns(self) -> int:
        """Its record was in the log by then; OPEN_NS if that is not known."""
        return min(self.staged_ns, self.ended_ns if self.acked else OPEN_NS)


class Fetched(NamedTuple):
    unit: int
    offset: int
    invoked_ns: int
    ended_ns: int


class Assigned(NamedTuple):
    """What a member was told by SyncGroup; leader and protocol: by the JoinGroup before it."""

    generation: int
    member: str
    units: tuple[int, ...]
    ended_ns: int
    leader: str = ""
    protocol: str = ""


class Sent(NamedTuple):
    """What a leader sent with its SyncGroup: units by member."""

    generation: int
    units: dict[str, tuple[int, ...]]


class Expiry(NamedTuple):
    """A committed offset was rightly forgotten: what was committed or shown before may be missing from then on."""

    unit: int
    at_ns: int


class Deletion(NamedTuple):
    """An OffsetDelete of one unit that was acknowledged."""

    unit: int
    invoked_ns: int
    ended_ns: int


@dataclass(slots=True)
class GroupHistory:
    """expiries: what was taken by deletions, too. instances: by member id, of static members. forgotten_ns: when the
    group was forgotten, in order."""

    commits: list[Commit] = field(default_factory=list)
    fetches: list[Fetched] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    expiries: list[Expiry] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    instances: dict[str, str] = field(default_factory=dict)
    forgotten_ns: list[int] = field(default_factory=list)

    def life_at(self, at_ns: int) -> int:
        return bisect_left(self.forgotten_ns, at_ns)

    def name_of(self, member: str) -> str:
        return self.instances.get(member, member)


def check_groups(history: GroupHistory) -> list[Finding]:
    return [*check_offsets(history), *_fencing(history), *_owners(history), *_leaders(history)]


def check_offsets(history: GroupHistory) -> Iterator[Finding]:
    tried = {(commit.unit, commit.offset) for commit in history.commits}
    for fetch in history.fetches:
        if fetch.offset != NOTHING and (fetch.unit, fetch.offset) not in tried:
            yield Finding("group-offset-invented", f"nobody has committed what {fetch} shows")
        since_ns = max((one.at_ns for one in history.expiries if _concerns(one, fetch)), default=-1)
        of_unit = [one for one in history.commits if one.unit == fetch.unit and one.acked]
        before = [one for one in of_unit if one.invoked_ns > since_ns]
        known = max((one.offset for one in before if one.ended_ns < fetch.invoked_ns), default=NOTHING)
        if fetch.offset < known:
            yield Finding("group-commit-lost", f"{known} was acknowledged before {fetch}")
        shown = (one for one in history.fetches if one.unit == fetch.unit and one.ended_ns < fetch.invoked_ns)
        earlier = max((one.offset for one in shown if one.invoked_ns > since_ns), default=NOTHING)
        if fetch.offset < earlier:
            yield Finding("group-offset-undone", f"{earlier} was shown before {fetch}")
        yield from _returned(history, fetch)


def _returned(history: GroupHistory, fetch: Fetched) -> Iterator[Finding]:
    """An offset may be committed again: then it is the later commit that the fetch shows."""
    shown = [one for one in history.commits if (one.unit, one.offset) == (fetch.unit, fetch.offset)]
    written_ns = max((one.written_ns for one in shown), default=OPEN_NS)
    for one in history.deletions:
        if one.unit == fetch.unit and written_ns < one.invoked_ns and one.ended_ns < fetch.invoked_ns:
            yield Finding("group-deleted-offset-returns", f"{one} took what {fetch} shows")


def _concerns(expiry: Expiry, fetch: Fetched) -> bool:
    return expiry.unit == fetch.unit and expiry.at_ns <= fetch.ended_ns


def _fencing(history: GroupHistory) -> Iterator[Finding]:
    for commit in history.commits:
        if not commit.acked:
            continue
        for assigned in history.assigned:
            if assigned.generation <= commit.generation or assigned.ended_ns >= commit.invoked_ns:
                continue
            if history.life_at(assigned.ended_ns) == history.life_at(commit.invoked_ns):
                yield Finding("group-commit-fenced", f"{commit} was acknowledged behind {assigned}")
                break


def _owners(history: GroupHistory) -> Iterator[Finding]:
    owners: dict[tuple[int, int, int], str] = {}
    for assigned in history.assigned:
        member, life = history.name_of(assigned.member), history.life_at(assigned.ended_ns)
        for unit in assigned.units:
            owner = owners.setdefault((life, assigned.generation, unit), member)
            if owner != member:
                text = f"generation {assigned.generation}: {owner} and {member} have unit {unit}"
                yield Finding("group-two-owners", text)
        of_generation = [one.units for one in history.sent if one.generation == assigned.generation]
        sent = [{history.name_of(name): units for name, units in one.items()}.get(member, ()) for one in of_generation]
        if assigned.units not in sent:
            yield Finding("group-assignment-changed", f"{assigned}, and the leader sent {sent}")


def _leaders(history: GroupHistory) -> Iterator[Finding]:
    told: dict[tuple[int, int], tuple[str, str]] = {}
    for assigned in history.assigned:
        now = (history.name_of(assigned.leader), assigned.protocol)
        known = told.setdefault((history.life_at(assigned.ended_ns), assigned.generation), now)
        if known != now:
            yield Finding("group-two-leaders", f"generation {assigned.generation}: {known} and {now}")
