"""The protocol of a load: what is written into its folder, in which order, and who may write it. No input or output.

1. The newest commit gives the position. The plan behind it is read: a plan without its commit is what runs now, as it
   was planned, whatever the user wants today; its loader may be dead.
2. Else a plan is chosen and created if absent. Only who has created it goes on. Who hears that it exists reads it: it
   may be its own (an answer was lost), or another's, and then this loader has lost and writes nothing.
3. Each range is written under a name that is made of its offsets. A file of a new range is created if absent, and never
   written over. A file of a range that is loaded again takes the place of the former one in one step.
4. The commit is created if absent, in the same way. Of a table (`delta`, `iceberg`) the commit is the table's own,
   which says of which load it is; this one is written from it. The table is asked before every attempt, and so after
   every attempt of which nobody knows how it ended.

So a loader may die between any two steps, and two may run at once: no offset is in two files at any time, and none that
was committed is ever missing. Why nothing is deleted: of two loaders the slower one must not be able to do harm.

Each function is a generator of `Step`s; whoever drives it sends each step's result back in (`driving.py`; the tests
drive two at once, in every order).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import TopicPartition
from quorumlog.spark.load import folder
from quorumlog.spark.load.choosing import CannotLoad, Choice, Covered, covered_by
from quorumlog.spark.load.folder import (
    Commit,
    Layout,
    LoadedFile,
    LoadedRange,
    Plan,
    PlannedRange,
    at,
    parse_commit,
    parse_plan,
)

MAX_TRIES = 10  # to create an object while nobody can say whether it is there


class StoreUnclear(QuorumlogError):
    """Whether an object was created could not be found out."""


@dataclass(frozen=True, slots=True)
class List:
    """The result: every name that begins so, as a list."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Read:
    """The result: the object's bytes, or None."""

    name: str


@dataclass(frozen=True, slots=True)
class Create:
    """The result: True: it was created. False: it exists already, or nobody knows."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Choose:
    """The result: a Choice, or None if there is nothing new."""

    last: Commit | None
    covered: Mapping[TopicPartition, Sequence[Covered]]


@dataclass(frozen=True, slots=True)
class Work:
    """Runs `publish` for each range of the plan, in any order, on any machine. The result: a LoadedRange for each."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class AskTable:
    """The result: Told, or None if nobody knows."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Told:
    """What the folder's table says of one load. base: the table as it was asked, which an attempt builds on.

    commit: None of a load that it has: the table does not say any more what it wrote.
    """

    has_it: bool
    base: Any
    commit: Commit | None = None


@dataclass(frozen=True, slots=True)
class AddToTable:
    """Puts what was loaded into the table in one commit of it, if the table is still as `base` says.

    The result: True: it is there. False: it is not, or nobody knows.
    """

    plan: Plan
    commit: Commit
    base: Any


@dataclass(frozen=True, slots=True)
class Put:
    """Gives a finished local file its name. replaces: in the place of one that is there. The result: as of Create."""

    name: str
    local: Any
    replaces: bool


@dataclass(frozen=True, slots=True)
class Inspect:
    """The result: a LoadedFile of what is there under this name, or None."""

    name: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """Removes what loads up to this number have left unfinished, long ago. It has no result."""

    number: int


Step = List | Read | Create | Choose | Work | AskTable | AddToTable | Put | Inspect | Sweep
T = TypeVar("T")
Steps = Generator[Step, Any, T]


class Ended(StrEnum):
    COMMITTED = "committed"
    NOTHING = "nothing new"
    LOST = "another loader works"  # it has planned this load, and may still be at it


@dataclass(frozen=True, slots=True)
class Outcome:
    """number: of the load; of NOTHING that of the newest commit. was_pending: an earlier loader had planned it."""

    ended: Ended
    number: int
    commit: Commit | None = None
    was_pending: bool = False


def load(token: str, load_id: str, *, reads_again: bool) -> Steps[Outcome]:
    """One load. token: of this loader alone. load_id: for a folder that has none. reads_again: the user names a
    beginning. Raises what choosing raises, BadRecord, StoreUnclear."""
    number, last = yield from newest()
    name = folder.plan_name(number + 1)
    found = yield Read(name)
    was_pending = found is not None
    if found is not None:
        plan = parse_plan(name, found)
    else:
        if last is None:
            yield from _check_empty(name)
        commits = (yield from commits_to(number)) if reads_again else ()
        choice: Choice | None = yield Choose(last, covered_by(commits))
        if choice is None:
            return Outcome(Ended.NOTHING, number, last)
        plan = _plan(number + 1, token, last.load_id if last else load_id, choice)
        written = parse_plan(name, (yield from create_once(name, plan.to_bytes())))
        if written.token != token:
            return Outcome(Ended.LOST, number + 1)
    ranges = yield Work(plan)
    ranges = yield from _with_leftovers(plan, ranges)
    commit = yield from _commit(plan, ranges, token)
    yield Sweep(commit.number)
    return Outcome(Ended.COMMITTED, commit.number, commit, was_pending)


def newest() -> Steps[tuple[int, Commit | None]]:
    number = folder.newest_commit((yield List(folder.COMMITS)))
    return number, (yield from _commit_of(number)) if number else None


def commits_to(number: int) -> Steps[list[Commit]]:
    """All of them, from the first on."""
    found = []
    for one in range(1, number + 1):
        found.append((yield from _commit_of(one)))
    return found


def create_once(name: str, data: bytes) -> Steps[bytes]:
    """What the object holds from now on: `data`, or what another has created there. Raises StoreUnclear."""
    for _ in range(MAX_TRIES):
        if (yield Create(name, data)):
            return data
        found: bytes | None = yield Read(name)
        if found is not None:
            return found
    raise StoreUnclear(
        f"{name} could not be created in {MAX_TRIES} tries, and is not there either: look at the store, then load again"
    )


def publish(
    planned: PlannedRange, written: Mapping[str, tuple[LoadedFile, Any]], number: int
) -> Steps[tuple[LoadedFile, ...]]:
    """Names the files of one range of load `number`. written: by path, with the local file.

    A former file of the range that has no records any more must be among `written`, without rows: nothing is deleted.
    Nothing is written over once the load is committed: another loader was faster, and its commit counts its bytes.
    """
    files = []
    for path, (file, local) in sorted(written.items()):
        if planned.is_written_over and (committed := (yield Read(folder.commit_name(number)))) is not None:
            return _files_of(planned, parse_commit(folder.commit_name(number), committed))
        files.append((yield from _put(path, file, local, replaces=planned.is_written_over)))
    return tuple(files)


def _files_of(planned: PlannedRange, commit: Commit) -> tuple[LoadedFile, ...]:
    same = [one for one in commit.ranges if (*at(one), one.start) == (*at(planned), planned.start)]
    return tuple(file for one in same for file in one.files)


def _put(path: str, file: LoadedFile, local: Any, *, replaces: bool) -> Steps[LoadedFile]:
    for _ in range(MAX_TRIES):
        if (yield Put(path, local, replaces)):
            return file
        if not replaces:
            found: LoadedFile | None = yield Inspect(path)  # of the same offsets, from an earlier try
            if found is not None:
                return found
    raise StoreUnclear(
        f"{path} could not be written in {MAX_TRIES} tries, and is not there either: look at the store, then load again"
    )


def _with_leftovers(plan: Plan, ranges: Sequence[LoadedRange]) -> Steps[tuple[LoadedRange, ...]]:
    """With the files of days for which an earlier try found records that have been compacted away since then."""
    if not plan.layout.by_day or not plan.ranges:
        return tuple(ranges)
    known = {file.path for one in ranges for file in one.files}
    found: dict[str, list[str]] = {}
    for path in (yield List("dt=")):
        if path not in known:
            found.setdefault(folder.name_without_day(path), []).append(path)
    complete, planned = [], {(*at(one), one.start): one.name for one in plan.ranges}
    for one in ranges:
        more = []
        for path in sorted(found.get(planned[(*at(one), one.start)], ())):
            more.append((yield Inspect(path)))
        files = sorted((*one.files, *more), key=lambda file: file.path)
        complete.append(replace(one, files=tuple(files)))
    return tuple(complete)


def _commit(plan: Plan, ranges: Sequence[LoadedRange], token: str) -> Steps[Commit]:
    """The commit of this plan, be it ours or that of another loader, which has done the same."""
    name = folder.commit_name(plan.number)
    commit = Commit(
        number=plan.number,
        load_id=plan.load_id,
        token=token,
        layout=plan.layout,
        position=plan.position,
        ranges=tuple(ranges),
        lost=plan.lost,
    )
    if plan.layout.table:
        commit = yield from _tabled(plan, commit)
    return parse_commit(name, (yield from create_once(name, commit.to_bytes())))


def _tabled(plan: Plan, commit: Commit) -> Steps[Commit]:
    """The commit that the table has of this load: this one, or that of another loader."""
    for _ in range(MAX_TRIES):
        told: Told | None = yield AskTable(plan)
        if told is not None and told.has_it:
            return told.commit or commit
        if told is not None and (yield AddToTable(plan, commit, told.base)):
            return commit
    raise StoreUnclear(
        f"load {plan.number} did not get into the folder's table in {MAX_TRIES} tries; what stood in the way is told "
        "above. Load again: what was planned is done first"
    )


def _commit_of(number: int) -> Steps[Commit]:
    name = folder.commit_name(number)
    found = yield Read(name)
    if found is None:
        raise CannotLoad(f"{name} is missing, and a later one is there: restore it, or load into another folder")
    return parse_commit(name, found)


def _check_empty(plan_name: str) -> Steps[None]:
    """Raises CannotLoad for files of which no plan is known; those of another loader's first plan are none."""
    strange = next((name for name in (yield List("")) if name.endswith(folder.SUFFIX)), None)
    if strange is not None and (yield Read(plan_name)) is None:
        raise CannotLoad(
            f"the folder holds {strange} and no {folder.COMMITS}*.json: what it has cannot be known. "
            "Load into an empty folder, or restore the commits"
        )


def _plan(number: int, token: str, load_id: str, choice: Choice) -> Plan:
    return Plan(
        number=number,
        load_id=load_id,
        token=token,
        layout=choice.layout,
        position=choice.position,
        ranges=tuple(_named(one, number, choice.layout) for one in choice.ranges),
        lost=choice.lost,
        metadata_offsets=choice.metadata_offsets,
    )


def _named(planned: PlannedRange, number: int, layout: Layout) -> PlannedRange:
    return replace(planned, load=number) if planned.is_again and layout.table else planned
