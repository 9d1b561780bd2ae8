"""Judges a loaded folder by its commits: no gap between their ranges, and each file as it was committed.

Offsets inside a range may be missing, since compaction, markers and aborted transactions leave gaps: what counts is
that the ranges follow on one another, and that each file has the rows that its commit counts, within its range.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quorumlog.client.fetch_position import TopicPartition
from quorumlog.ids import Offset
from quorumlog.spark.load.choosing import covered_by
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.names import META, SUFFIX, name_without_day, plan_name
from quorumlog.spark.load.parquet import Footer, describe, read_footer
from quorumlog.spark.load.protocol import Steps, commits_to, newest
from quorumlog.spark.load.records import Commit, LoadedFile, LoadedRange, Lost, Plan, at, parse_plan
from quorumlog.spark.load.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """faults: texts; none: all is as it was committed. pending: the load that is planned and not committed, or 0."""

    commits: int
    files: int
    rows: int
    lost: tuple[Lost, ...]
    faults: tuple[str, ...]
    pending: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a file is now."""

    file: LoadedFile
    footer: Footer


def verify(store: Store, shown: Callable[[int, int], None] | None = None) -> Report:
    """Reads every file of the folder. shown: is told how many are read, of how many. Raises CannotLoad, BadRecord."""
    visible = [name for name in store.list("") if name.endswith(SUFFIX) and not name.startswith(META)]
    commits = drive(_all_commits(), store)  # behind the list: what is committed meanwhile has files that are not in it
    pending = store.read(plan_name(len(commits) + 1))
    plan = parse_plan(plan_name(len(commits) + 1), pending) if pending is not None else None
    wanted = committed_files(commits)
    found: dict[str, Found | str | None] = {}
    for path in wanted:
        found[path] = _look(store, path)
        if shown is not None:
            shown(len(found), len(wanted))
    if commits and commits[-1].layout.table:
        visible = []  # what is not in the table any more lies there until somebody vacuums it
    faults = (*gaps(commits), *_differences(wanted, found, _changing(plan)), *_strange(visible, wanted, plan))
    return Report(
        commits=len(commits),
        files=len(wanted),
        rows=sum(file.rows for _, file in wanted.values()),
        lost=tuple(lost for commit in commits for lost in commit.lost),
        faults=faults,
        pending=plan.number if plan else 0,
    )


def committed_files(commits: Sequence[Commit]) -> dict[str, tuple[LoadedRange, LoadedFile]]:
    """By path, of each range those of the last commit that names it."""
    newest = {(*at(one), one.start, one.end): one for commit in commits for one in commit.ranges}
    return {file.path: (one, file) for one in newest.values() for file in one.files}


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


def _look(store: Store, path: str) -> Found | str | None:
    """None: it is not there. A text: why it cannot be read."""
    with store.local_copy(path) as local:
        if local is None:
            return None
        try:
            footer = read_footer(local)
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            return str(error)
        return Found(describe(path, local, footer.rows), footer)


def _changing(plan: Plan | None) -> set[str]:
    """Files that a pending load writes anew: they are as they were committed, or as that load has them already."""
    return {path for one in (plan.ranges if plan else ()) if one.is_written_over for path in one.replaces}


def _differences(
    wanted: Mapping[str, tuple[LoadedRange, LoadedFile]],
    found: Mapping[str, Found | str | None],
    changing: Collection[str],
) -> Iterator[str]:
    hint = "load its range again with --from"
    for path, (one, file) in wanted.items():
        now, first, last = found[path], one.start, one.end - 1
        if now is None:
            yield f"{path} is missing; {hint} {first}"
        elif isinstance(now, str):
            yield f"{path} is no Parquet file ({now}); {hint} {first}"
        elif now.file.rows != file.rows and path not in changing:
            yield f"{path} has {now.file.rows} rows, and its commit counts {file.rows}; {hint} {first}"
        elif now.file != file and path not in changing:
            yield f"{path} has other bytes than were committed (size or CRC-32C); {hint} {first}"
        elif now.footer.rows and not first <= now.footer.first <= now.footer.last <= last:
            yield f"{path} has offsets {now.footer.first} to {now.footer.last}, outside of its range; {hint} {first}"
        elif now.footer.rows > now.footer.last - now.footer.first + 1:
            yield f"{path} has more rows than offsets; {hint} {first}"


def _strange(visible: Sequence[str], wanted: Mapping[str, object], plan: Plan | None) -> Iterator[str]:
    """Files that no commit names, but for those of a load that is under way."""
    planned = {one.name for one in plan.ranges} if plan else set()
    for path in visible:
        if path not in wanted and name_without_day(path) not in planned:
            yield f"{path} is in no commit; look at what has written it, and move it away"
