"""The table of a folder, as a load and `--verify` need it (`delta`, `iceberg`), and its rows.

A file of the table is one of a load's, whose name says what it holds, or what something else has made of such files, as
OPTIMIZE and updates do. Rows are replaced by topic, partition and offset: a file that holds nothing else leaves the
table; of another one what stays is written to a new file, and both changes are in the table's one commit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from importlib.util import find_spec
from itertools import accumulate, takewhile
from typing import Any, Protocol
from uuid import uuid4

from quorumlog.client.errors import ConfigError
from quorumlog.ids import Offset, TopicPartition
from quorumlog.spark.load.choosing import CannotLoad, Choice
from quorumlog.spark.load.folder import (
    DELTA,
    Commit,
    LoadedFile,
    LoadedRange,
    Plan,
    PlannedRange,
    at,
    range_of,
    rest_name,
)
from quorumlog.spark.load.protocol import StoreUnclear, Told
from quorumlog.spark.load.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One live file. path: below the folder. day: as of `name_of_day`; empty in a table without days.

    read: its rows as an Arrow table, as the folder's table has them: these columns, or all that such a file has.
    is_whole: all rows of the file are the table's: nothing has deleted some by a file or a vector beside it.
    """

    path: str
    topic: str
    day: str
    read: Callable[[Sequence[str] | None], Any]
    is_whole: bool = True


class LakeTable(Protocol):
    """Its methods raise QuorumlogError."""

    def need(self) -> None:
        """Raises ConfigError if the library is not installed, or is too old."""

    def check(self, last: Commit | None, choice: Choice) -> None:
        """Before a plan is made of this choice, for what is planned must be done before anything else.

        Raises CannotLoad for a table of somebody else, one that is gone, and one whose rows cannot be replaced.
        """

    def ask(self, plan: Plan) -> Told | None:
        """The step AskTable. Raises CannotLoad for a table that has not what was committed before this plan."""

    def add(self, plan: Plan, commit: Commit, base: Any) -> bool:
        """The step AddToTable."""

    def files(self) -> list[TableFile]:
        """The live ones; none of a table that is not there."""


def table_of(kind: str, store: Store) -> LakeTable:
    """kind: of a Layout that has one."""
    from quorumlog.spark.load.delta import Delta
    from quorumlog.spark.load.iceberg import Iceberg

    return Delta(store) if kind == DELTA else Iceberg(store)


def need_library(name: str, since: tuple[int, int], of: str) -> None:
    """of: what needs it. Raises ConfigError, also for a version that is older: it would fail behind a plan."""
    if find_spec(name) is None:
        raise ConfigError(f"a table of {of} needs {name}: pip install 'quorumlog[lake]'")
    found = version(name)
    if tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < since:
        raise ConfigError(
            f"a table of {of} needs {name} {since[0]}.{since[1]} or newer, and {found} is here: "
            "pip install --upgrade 'quorumlog[lake]'"
        )


def check_has(address: str, log: str, done: int | None, number: int, *, is_there: bool) -> None:
    """log: where the table says what is in it. done: the newest load of this folder that it has, or None. number: of
    the newest load that is committed, or 0.

    Raises CannotLoad unless the table is there and has all these loads: one more would be committed upon rows that are
    gone. Before the first one there may be no table, and none of somebody else.
    """
    if not number:
        if is_there and done is None:
            raise CannotLoad(f"{address} is no table of a load: something else has made it. Load into an empty folder")
    elif not is_there:
        raise CannotLoad(
            f"{address}: its table is gone, and load {number} is committed: restore {log}, or load into another folder"
        )
    elif done is None or done < number:
        raise CannotLoad(
            f"{address}: load {number} is committed, and its table has {f'load {done}' if done else 'no load'} as the "
            f"newest: an older state, or another table, is in its place. Restore {log} as load {number} left it, or "
            "load into another folder"
        )


def check_readable(address: str, files: Iterable[TableFile], choice: Choice, store: Store) -> None:
    """Raises CannotLoad for a file whose other rows would have to be read, and which is not there.

    A plan that cannot be carried out would stand before all that come later.
    """
    shares = Shares(one for one in choice.ranges if one.is_again)
    for file in files:
        if shares.of(file.path, file.topic) is Share.SOME and store.size(file.path) is None:
            raise CannotLoad(
                f"{address}: the table names {file.path}, which may have rows that are to be loaded again, and is not "
                "there. Restore it, or take it out of the table (of Delta Lake: FSCK REPAIR TABLE), or leave --from out"
            )


class Share(Enum):
    """How much of a file is to be replaced."""

    NONE = 0
    SOME = 1  # perhaps
    ALL = 2


def replaced(plan: Plan, commit: Commit) -> list[LoadedRange]:
    """The ranges of this commit whose former rows it replaces."""
    again = {(*at(one), one.start) for one in plan.ranges if one.is_again}
    return [one for one in commit.ranges if (*at(one), one.start) in again and not one.is_kept]


def added(commit: Commit) -> list[tuple[LoadedRange, LoadedFile]]:
    """The files of this commit that its load has written: not those that it has kept."""
    return [(one, file) for one in commit.ranges if not one.is_kept for file in one.files]


class Shares:
    """Of many files, by their names alone: each is compared with the ranges that it cuts, not with all of them."""

    def __init__(self, ranges: Iterable[LoadedRange | PlannedRange]) -> None:
        self._by_place = _by_place(ranges)
        self._ends = {key: list(accumulate((one.end for one in there), max)) for key, there in self._by_place.items()}
        self._topics = {topic for topic, _ in self._by_place}

    def of(self, path: str, topic: str) -> Share:
        """topic: of the file's rows."""
        named = range_of(path)
        if named is None:
            return Share.SOME if topic in self._topics else Share.NONE
        _, partition, start, end = named
        there, ends = self._by_place.get((topic, partition), []), self._ends.get((topic, partition), [])
        behind = range(bisect_right(ends, start), len(there))  # all before end at or before the file's start
        from_start = (there[index] for index in behind)
        cut = [one for one in takewhile(lambda one: one.start < end, from_start) if one.end > start]
        if any(one.start <= start and end <= one.end for one in cut):
            return Share.ALL
        return Share.SOME if cut else Share.NONE


def _by_place(ranges: Iterable[LoadedRange | PlannedRange]) -> dict[TopicPartition, list[LoadedRange | PlannedRange]]:
    """Those of each partition, in the order of their starts."""
    found: dict[TopicPartition, list[LoadedRange | PlannedRange]] = {}
    for one in sorted(ranges, key=lambda one: one.start):
        found.setdefault(at(one), []).append(one)
    return found


def take_out(
    files: Iterable[TableFile], ranges: Sequence[LoadedRange], store: Store
) -> tuple[list[TableFile], list[tuple[TableFile, LoadedFile]]]:
    """The files that leave the table with the rows of these ranges, and new ones with what else was in a former one.

    One file at a time is in memory, and only of those that a load has not named.
    """
    leaving, rests, shares = [], [], Shares(ranges)
    for file in files:
        share = shares.of(file.path, file.topic)
        if share is Share.NONE:
            continue
        if share is Share.SOME:
            rows = file.read(None)
            stays = _without(rows, [one for one in ranges if one.topic == file.topic])
            if stays.num_rows == rows.num_rows:
                continue
            if stays.num_rows:
                rests.append((file, _write(store, file, stays)))
        leaving.append(file)
    return leaving, rests


def _without(rows: Any, ranges: Iterable[LoadedRange]) -> Any:
    """rows: of the ranges' topic. A row that does not say where it belongs is in no range."""
    import numpy as np
    import pyarrow as pa

    partitions, offsets = rows.column("partition").to_numpy(), rows.column("offset").to_numpy()
    goes = np.zeros(rows.num_rows, bool)
    for one in ranges:
        goes |= (partitions == one.partition) & (offsets >= one.start) & (offsets < one.end)
    return rows.filter(pa.array(~goes))


def _write(store: Store, file: TableFile, rows: Any) -> LoadedFile:
    """Under a name that nobody else can have. If its attempt fails, it lies there as other files that left the table.

    Raises StoreUnclear.
    """
    import pyarrow.parquet as pq

    from quorumlog.spark.load.parquet import describe

    path = rest_name(file.topic, file.day, uuid4().hex)
    with store.scratch(0) as folder:
        pq.write_table(rows, folder / "rest")
        described = describe(path, folder / "rest")
        if not store.put_file(path, folder / "rest", replaces=False):
            raise StoreUnclear(f"whether {path} was written is not known; load again: what was planned is done first")
    return described


def of_no_range(topic: str) -> tuple[str, int, Offset]:
    """The key of `count_rows` for rows of a topic that are in no range, as those without an offset."""
    return topic, -1, Offset(-1)


def no_rows() -> Any:
    """An Arrow table with what is counted of each row."""
    import pyarrow as pa

    return pa.table({"partition": pa.array([], pa.int32()), "offset": pa.array([], pa.int64())})


def count_rows(
    files: Iterable[TableFile], ranges: Sequence[LoadedRange | PlannedRange]
) -> Counter[tuple[str, int, Offset]]:
    """Rows of each range in these files, by topic, partition and start. One file at a time is in memory."""
    import numpy as np

    by_place = _by_place(ranges)
    found: Counter[tuple[str, int, Offset]] = Counter()
    for file in files:
        all_rows = file.read(("partition", "offset"))
        rows = all_rows.drop_null()
        found[of_no_range(file.topic)] += all_rows.num_rows
        partitions, offsets = rows.column("partition").to_numpy(), rows.column("offset").to_numpy()
        for partition in np.unique(partitions):
            there = by_place.get((file.topic, int(partition)), [])
            mine = offsets[partitions == partition]
            which = np.searchsorted([one.start for one in there], mine, side="right") - 1
            for index in np.unique(which[which >= 0]):
                one = there[index]
                count = int(np.count_nonzero((which == index) & (mine < one.end)))
                found[(*at(one), one.start)] += count
                found[of_no_range(file.topic)] -= count
    return found
