"""Judges a loaded folder by its commits: no gap between their ranges, and each file as it was committed.

Offsets inside a range may be missing, since compaction, markers and aborted transactions leave gaps: what counts is
that the ranges follow on one another, and that each file has the rows that its commit counts, within its range.

Of a table it counts what the table names, a file as often as it does. Its files that a load has written are judged as
any; where something else has written their rows into others (OPTIMIZE), or has deleted rows without a new file, each
range must have as many rows in the table as its commit counts. Rows of no range are a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from quorumlog.ids import Offset, TopicPartition
from quorumlog.spark.load.choosing import CannotLoad, covered_by
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.folder import (
    META,
    SUFFIX,
    Commit,
    LoadedFile,
    LoadedRange,
    Lost,
    Plan,
    at,
    name_without_day,
    parse_plan,
    plan_name,
)
from quorumlog.spark.load.parquet import describe
from quorumlog.spark.load.protocol import Steps, commits_to, newest
from quorumlog.spark.load.store import Store
from quorumlog.spark.load.table import TableFile, count_rows, no_rows, of_no_range, table_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """faults: texts; none: all is as it was committed. pending: the load that is planned and not committed, or 0."""

    commits: int
    files: int
    rows: int
    lost: tuple[Lost, ...]
    faults: tuple[str, ...]
    pending: int


def verify(store: Store, shown: Callable[[int, int], None] | None = None) -> Report:
    """Reads every file of the folder. shown: is told how many are read, of how many. Raises CannotLoad, BadRecord."""
    visible = [name for name in store.list("") if name.endswith(SUFFIX) and not name.startswith(META)]
    commits = drive(_all_commits(), store)  # behind the list: what is committed meanwhile has files that are not in it
    live = _live(commits, store)  # before the next plan is looked for, which may have changed it
    pending = store.read(plan_name(len(commits) + 1))
    plan = parse_plan(plan_name(len(commits) + 1), pending) if pending is not None else None
    wanted = committed_files(commits)
    counted = sum(file.rows for _, file in wanted.values())
    changing = _changing(plan)
    if live is None:
        more = [*_strange(visible, wanted, plan)]
    else:
        more = [*_other_counts(commits, wanted, live, plan)]
        there = {file.path for file in live}
        wanted = {path: one for path, one in wanted.items() if path in there}
    found = {path: _look(store, path) for path in _told(wanted, shown)}
    faults = (*gaps(commits), *_differences(wanted, found, changing), *more)
    return Report(
        commits=len(commits),
        files=len(wanted) if live is None else len(live),
        rows=counted,
        lost=tuple(lost for commit in commits for lost in commit.lost),
        faults=faults,
        pending=plan.number if plan else 0,
    )


def committed_files(commits: Sequence[Commit]) -> dict[str, tuple[LoadedRange, LoadedFile]]:
    """By path, of each range those of the last commit that has written them."""
    return {file.path: (one, file) for one in _newest(commits) for file in one.files}


def _newest(commits: Sequence[Commit]) -> list[LoadedRange]:
    written = [one for commit in commits for one in commit.ranges if not one.is_kept]
    return list({(*at(one), one.start, one.end): one for one in written}.values())


def _live(commits: Sequence[Commit], store: Store) -> list[TableFile] | None:
    """The files that the folder's table names; None: it is none. Raises ConfigError without its library."""
    kind = commits[-1].layout.table if commits else ""
    if not kind:
        return None
    table = table_of(kind, store)
    table.need()
    return table.files()


def _other_counts(
    commits: Sequence[Commit],
    wanted: Mapping[str, tuple[LoadedRange, LoadedFile]],
    live: Sequence[TableFile],
    plan: Plan | None,
) -> Iterator[str]:
    """Ranges of which the table has more or fewer rows than their commits count, but for those of a pending load; rows
    that are in no range; and files that cannot be read."""
    under_way = plan.ranges if plan else ()
    pending = {(*at(one), one.start) for one in under_way}
    ranges = _newest(commits)
    whole = Counter(file.path for file in live if file.path in wanted and file.is_whole)
    unread: list[str] = []
    others = (replace(file, read=partial(_readable, file, unread)) for file in live if file.path not in whole)
    elsewhere = count_rows(others, [*ranges, *under_way])
    yield from unread
    for topic in sorted({file.topic for file in live}):
        if strange := elsewhere[of_no_range(topic)]:
            yield f"topic {topic}: the table has {strange} rows that no commit has; look at what has written them"
    for one in ranges:
        key = (*at(one), one.start)
        counted = sum(file.rows for file in one.files)
        there = sum(file.rows * whole[file.path] for file in one.files) + elsewhere[key]
        if there != counted and key not in pending:
            yield (
                f"{one.topic}-{one.partition}, offsets {one.start} to {one.end}: the table has {there} rows, and its "
                f"commit counts {counted}; load its range again with --from {one.start}"
            )


def _readable(file: TableFile, unread: list[str], columns: Sequence[str] | None) -> Any:
    """No rows of a file that cannot be read, which is noted."""
    try:
        return file.read(columns)
    except (OSError, ValueError, CannotLoad) as error:
        unread.append(f"{file.path}, which the table names, cannot be read ({str(error).partition(chr(10))[0]})")
        return no_rows()


def _told(items: Collection[T], shown: Callable[[int, int], None] | None) -> Iterator[T]:
    """Tells how many are done, each time that one is."""
    for done, item in enumerate(items):
        yield item
        if shown is not None:
            shown(done + 1, len(items))


def gaps(commits: Sequence[Commit]) -> Iterator[str]:
    """Offsets between two ranges, or before the position, that no commit names; and ranges that overlap."""
    position: Mapping[TopicPartition, Offset] = commits[-1].position.offsets if commits else {}
    for (topic, partition), ranges in sorted(covered_by(commits).items()):
        name, at = f"{topic}-{partition}", ranges[0].start
        for one in ranges:
            if one.start > at:
                yield f"{name}: no commit has the offsets {at} to {one.start}; load them with --from {at}"
            if one.start < at:
                yield f"{name}: two ranges have the offsets {one.start} to {min(at, one.end)}"
            at = max(at, one.end)
        if at != position[topic, partition]:
            yield f"{name}: the ranges end at {at}, and the last commit says {position[topic, partition]}"


def _all_commits() -> Steps[list[Commit]]:
    number, _ = yield from newest()
    return (yield from commits_to(number))


def _look(store: Store, path: str) -> LoadedFile | str | None:
    """None: it is not there. A text: why it cannot be read."""
    with store.local_copy(path) as local:
        if local is None:
            return None
        try:
            return describe(path, local)
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            return str(error)


def _changing(plan: Plan | None) -> set[str]:
    """Files that a pending load writes anew: they are as they were committed, or as that load has them already."""
    return {path for one in (plan.ranges if plan else ()) if one.is_written_over for path in one.replaces}


def _differences(
    wanted: Mapping[str, tuple[LoadedRange, LoadedFile]],
    found: Mapping[str, LoadedFile | str | None],
    changing: Collection[str],
) -> Iterator[str]:
    hint = "load its range again with --from"
    for path, (one, file) in wanted.items():
        now, first, last = found[path], one.start, one.end - 1
        if now is None:
            yield f"{path} is missing; {hint} {first}"
        elif isinstance(now, str):
            yield f"{path} is no Parquet file ({now}); {hint} {first}"
        elif now.rows != file.rows and path not in changing:
            yield f"{path} has {now.rows} rows, and its commit counts {file.rows}; {hint} {first}"
        elif now != file and path not in changing:
            yield f"{path} has other bytes than were committed (size or CRC-32C); {hint} {first}"
        elif now.rows and not first <= now.first <= now.last <= last:
            yield f"{path} has offsets {now.first} to {now.last}, outside of its range; {hint} {first}"
        elif now.rows > now.last - now.first + 1:
            yield f"{path} has more rows than offsets; {hint} {first}"


def _strange(visible: Sequence[str], wanted: Mapping[str, object], plan: Plan | None) -> Iterator[str]:
    """Files that no commit names, but for those of a load that is under way."""
    planned = {one.name for one in plan.ranges} if plan else set()
    for path in visible:
        if path not in wanted and name_without_day(path) not in planned:
            yield f"{path} is in no commit; look at what has written it, and move it away"
