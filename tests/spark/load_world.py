"""A load's folder, log and loaders in memory: whoever holds it says who takes the next step, and what goes wrong."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from quorumlog.ids import Epoch, Offset, Uuid
from quorumlog.spark.load.choosing import Wanted, choose
from quorumlog.spark.load.folder import (
    COMMITS,
    META,
    SUFFIX,
    Commit,
    LoadedFile,
    LoadedRange,
    Plan,
    name_of_day,
    parse_commit,
    parse_plan,
    plan_name,
)
from quorumlog.spark.load.protocol import (
    AddToTable,
    AskTable,
    Choose,
    Create,
    Ended,
    Inspect,
    List,
    Outcome,
    Put,
    Read,
    Step,
    Sweep,
    Told,
    Work,
    load,
    publish,
)
from quorumlog.spark.load.table import added, replaced
from quorumlog.spark.read.planning import LogSpan
from quorumlog.spark.stream.planning import by_partition

TOPIC = "orders"
TOPIC_ID = Uuid(bytes(range(16)))
CLUSTER = "c"


class Fault(Enum):
    """Of one Create or Put whose answer is lost: whether it was carried out."""

    NONE = 0
    DONE_UNHEARD = 1
    NOT_DONE = 2


@dataclass(frozen=True)
class TableState:
    """One state of a folder's table: the newest load that it has, and partitions and offsets by path."""

    load: int = 0
    commit: Commit | None = None
    files: dict[str, tuple[int, list[int]]] = field(default_factory=dict)


@dataclass
class World:
    """ends: by partition. compacted: pairs of partition and offset that the log has no more.

    objects: by name; a file is its partition and its offsets.
    """

    ends: dict[int, int] = field(default_factory=lambda: {0: 4, 1: 1})
    starts: Counter[int] = field(default_factory=Counter)
    compacted: set[tuple[int, int]] = field(default_factory=set)
    objects: dict[str, Any] = field(default_factory=dict)
    table: TableState | None = None

    def spans(self) -> list[LogSpan]:
        return [
            LogSpan(
                topic=TOPIC, topic_id=TOPIC_ID, partition=partition, start=Offset(self.starts[partition]),
                end=Offset(end), end_epoch=Epoch(1),
            )
            for partition, end in self.ends.items()
        ]  # fmt: skip

    def rows(self, partition: int, start: int, end: int) -> list[int]:
        start = max(start, self.starts[partition])
        return [offset for offset in range(start, end) if (partition, offset) not in self.compacted]

    def perform(self, step: Step, wanted: Wanted, fault: Fault) -> Any:
        match step:
            case List(prefix):
                return sorted(name for name in self.objects if name.startswith(prefix))
            case Read(name):
                return self.objects.get(name)
            case Create(name, data):
                return self._create(name, data, fault, replaces=False)
            case Put(name, local, replaces):
                return self._create(name, local, fault, replaces=replaces)
            case Inspect(name):
                return described(name, self.objects[name]) if name in self.objects else None
            case AskTable(plan):
                return None if fault is not Fault.NONE else self._told(plan)
            case AddToTable(plan, commit, base):
                return self._add(plan, commit, base, fault)
            case Choose(last, covered):
                return choose(last, covered, by_partition(self.spans()), wanted, CLUSTER)
            case Sweep():
                return None
        raise AssertionError(step)

    def _create(self, name: str, value: Any, fault: Fault, *, replaces: bool) -> bool:
        if fault is Fault.NOT_DONE or (name in self.objects and not replaces):
            return False
        self.objects[name] = value
        self.check()
        return fault is Fault.NONE

    def _told(self, plan: Plan) -> Told:
        state = self.table or TableState()
        commit = state.commit if state.load == plan.number else None
        return Told(has_it=state.load >= plan.number, base=self.table, commit=commit)

    def _add(self, plan: Plan, commit: Commit, base: TableState | None, fault: Fault) -> bool:
        if fault is Fault.NOT_DONE or self.table is not base:
            return False
        gone = {(one.partition, offset) for one in replaced(plan, commit) for offset in range(one.start, one.end)}
        stays = {
            path: (partition, [offset for offset in rows if (partition, offset) not in gone])
            for path, (partition, rows) in (base.files if base else {}).items()
        }
        new = {file.path: self.objects[file.path] for _, file in added(commit)}
        assert not {path for path in stays if stays[path][1]} & new.keys(), "a file is in the table already"
        self.table = TableState(plan.number, commit, {**stays, **new})
        self.check()
        return fault is Fault.NONE

    def rewrite(self) -> None:
        """As OPTIMIZE does: one file for each partition."""
        if self.table is not None:
            merged: dict[str, tuple[int, list[int]]] = {}
            for partition, rows in self.table.files.values():
                merged.setdefault(f"topic={TOPIC}/part-{partition}", (partition, []))[1].extend(rows)
            self.table = replace(self.table, files=merged)
            self.check()

    def files(self) -> dict[str, tuple[int, list[int]]]:
        """What any reader sees, of Parquet or of the table: partition and offsets by path."""
        if is_of_table(self.objects.get(plan_name(1), b"")):
            return self.table.files if self.table else {}
        return {name: rows for name, rows in self.objects.items() if name.endswith(SUFFIX) and META not in name}

    def check(self) -> None:
        """Whatever step comes next: no offset twice, and every one that was committed and is still in the log."""
        seen = Counter((partition, offset) for partition, rows in self.files().values() for offset in rows)
        assert not seen or max(seen.values()) == 1, f"twice: {[place for place, n in seen.items() if n > 1]}"
        for name in sorted(name for name in self.objects if name.startswith(COMMITS)):
            commit = parsed(name, self.objects[name])
            for one in commit.ranges:
                if commit.layout.table:
                    there = {offset for partition, offset in seen if partition == one.partition}
                else:
                    there = {offset for file in one.files for offset in self.files()[file.path][1]}
                missing = set(self.rows(one.partition, one.start, one.end)) - there
                assert not missing, f"{name} names {one.start}-{one.end}, and its files have no {sorted(missing)}"

    def check_whole(self) -> None:
        self.check()
        seen = {(partition, offset) for partition, rows in self.files().values() for offset in rows}
        there = {(p, offset) for p, end in self.ends.items() for offset in self.rows(p, 0, end)}
        assert there <= seen, f"missing: {sorted(there - seen)}"
        if self.table is not None:
            return
        named = {file.path for commit in commits(self) for file in commit.files}
        for path, (partition, rows) in self.files().items():
            gone = all((partition, offset) in self.compacted for offset in rows)
            assert path in named or gone, f"{path}, which no commit names, has more than what was compacted away"


@functools.lru_cache(maxsize=64)
def is_of_table(plan: bytes) -> bool:
    return bool(plan) and bool(parse_plan("plan", plan).layout.table)


@functools.lru_cache(maxsize=64)
def parsed(name: str, data: bytes) -> Commit:
    return parse_commit(name, data)


def described(name: str, rows: tuple[int, list[int]]) -> LoadedFile:
    return LoadedFile(path=name, rows=len(rows[1]), bytes=0, crc32c=0)


def loader(world: World, token: str, wanted: Wanted) -> Generator[Step, Fault, Outcome]:
    """Loads until nothing is pending. It yields before each step, which then meets the fault that is sent in."""
    while True:
        steps, result = load(token, "the-load", reads_again=wanted.starts is not None), None
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, Work):
                    result = yield from work(world, step.plan, wanted)
                else:
                    result = world.perform(step, wanted, (yield step))
        except StopIteration as end:
            outcome: Outcome = end.value
        if not outcome.was_pending:
            return outcome


def work(world: World, plan: Plan, wanted: Wanted) -> Generator[Step, Fault, list[LoadedRange]]:
    done = []
    for planned in plan.ranges:
        yield Read("the log")  # it may change between two ranges, and behind this one
        former = planned.replaces if planned.is_written_over else ()
        content: dict[str, Any] = {path: (planned.partition, []) for path in former}
        for offset in world.rows(planned.partition, planned.start, planned.end):
            path = name_of_day(f"2026-11-{20 + offset % 2}" if plan.layout.by_day else "", planned.name)
            content.setdefault(path, (planned.partition, []))[1].append(offset)
        written = {path: (described(path, rows), rows) for path, rows in content.items()}
        steps, result = publish(planned, written, plan.number), None
        try:
            while True:
                step = steps.send(result)
                result = world.perform(step, wanted, (yield step))
        except StopIteration as end:
            done.append(
                LoadedRange(
                    topic=planned.topic, partition=planned.partition, start=planned.start, end=planned.end,
                    files=end.value,
                )
            )  # fmt: skip
    return done


class Run:
    """One loader, of which the holder says how far it comes."""

    def __init__(self, world: World, token: str, wanted: Wanted) -> None:
        self._world = world
        self._steps = loader(world, token, wanted)
        self.outcome: Outcome | None = None
        self.step: Step | None = next(self._steps)

    @property
    def lives(self) -> bool:
        return self.step is not None

    def go(self, steps: int = 10_000, fault: Fault = Fault.NONE) -> int:
        """Takes so many steps, or all that are left. Returns how many it took. fault: of the first one."""
        for taken in range(steps):
            if self.step is None:
                return taken
            try:
                self.step = self._steps.send(fault)
            except StopIteration as end:
                self.outcome, self.step = end.value, None
            fault = Fault.NONE
        return steps

    def die(self) -> None:
        self._steps.close()
        self.step = None


def load_all(world: World, token: str, wanted: Wanted) -> Outcome:
    """A loader that nobody disturbs."""
    run = Run(world, token, wanted)
    run.go()
    assert run.outcome is not None and run.outcome.ended is not Ended.LOST
    return run.outcome


def commits(world: World) -> Iterator[Commit]:
    for name in sorted(world.objects):
        if name.startswith(COMMITS):
            yield parsed(name, world.objects[name])
