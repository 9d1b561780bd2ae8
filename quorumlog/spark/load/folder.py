"""The folder that a topic is loaded into: its names, and the plans and commits that it remembers in JSON. Pure.

    topic=orders/p=3/00000000000000120000-00000000000000180000.parquet     one range of offsets, its end exclusive
    dt=2026-11-20/topic=orders/p=3/...                                     with a folder for each day
    topic=orders/rest-1f0c....parquet       of a table: what a load has left of a file that something else has written
    _quorumlog/plan-00000017.json, _quorumlog/commit-00000017.json         what load 17 reads, and what it wrote

A range always has the same name, so a load that is repeated cannot add a second file with the same records. Readers of
Parquet skip what begins with `_`, and what is under way there does not end in .parquet.

A plan says what load N reads, before anything is written; a commit says what it has written. Both name who wrote them
(`token`), the load's id, the cluster, the topics' ids, and the position behind it, in the form of a stream's checkpoint
(`stream_offset`). Source of the idea: Kafka 0.7 stored the offsets of its Hadoop load beside the data, so a task that
failed could begin again without repeating a record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import Epoch, Offset, TopicPartition
from quorumlog.spark.read.planning import PartitionRange
from quorumlog.spark.stream.offset import StreamOffset, stream_offset

META = "_quorumlog"
UNDER_WAY = f"{META}/tmp"
SUFFIX = ".parquet"
NO_DAY = "__HIVE_DEFAULT_PARTITION__"  # the folder of null, as Hive and those after it name it
COMMITS = f"{META}/commit-"

_COMMIT = re.compile(rf"{META}/commit-(\d{{8,}})\.json")
_RANGE = re.compile(r"(?:dt=[^/]+/)?topic=([^/]+)/p=(\d+)/(\d{20})-(\d{20})(?:\.\d+)?\.parquet")


def plan_name(number: int) -> str:
    return f"{META}/plan-{number:08}.json"


def commit_name(number: int) -> str:
    return f"{COMMITS}{number:08}.json"


def newest_commit(names: Iterable[str]) -> int:
    """The highest number; 0 if there is no commit."""
    return max((int(found[1]) for name in names if (found := _COMMIT.fullmatch(name))), default=0)


def range_name(topic: str, partition: int, start: Offset, end: Offset, load: int = 0) -> str:
    """load: where a range that is loaded again needs another name."""
    again = f".{load}" if load else ""
    return f"topic={topic}/p={partition}/{start:020}-{end:020}{again}{SUFFIX}"


def range_of(path: str) -> tuple[str, int, Offset, Offset] | None:
    """Topic, partition, start and end of a file that a load has named; None of another."""
    found = _RANGE.fullmatch(path)
    return None if found is None else (found[1], int(found[2]), Offset(int(found[3])), Offset(int(found[4])))


def rest_name(topic: str, day: str, token: str) -> str:
    """day: as of `name_of_day`. token: of this file alone."""
    return name_of_day(day, f"topic={topic}/rest-{token}{SUFFIX}")


def values_of(path: str) -> dict[str, str | None]:
    """What the folders of a path say of its rows: `topic`, and perhaps `dt`, which NO_DAY makes None.

    A topic may have that name: it is one all the same.
    """
    found = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    none = {"dt": NO_DAY}
    return {
        name: None if value == none.get(name) else value for name, value in found.items() if name in ("dt", "topic")
    }


def name_of_day(day: str, name: str) -> str:
    """day: as 2026-11-20; empty if days have no folders."""
    return f"dt={day}/{name}" if day else name


def name_without_day(path: str) -> str:
    return path.partition("/")[2] if path.startswith("dt=") else path


VERSION = 1
BY_DAY = "date(timestamp)"
DELTA = "delta"
ICEBERG = "iceberg"
DEFAULT_ROWS_PER_FILE = 5_000_000


class BadRecord(QuorumlogError):
    """A plan or a commit cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a load looks like. rows_per_file: offsets of one range. partition_by: empty, or BY_DAY.

    table: empty, DELTA or ICEBERG. The files of a table never change, so a range that is loaded again gets a file of
    another name there.
    """

    rows_per_file: int = DEFAULT_ROWS_PER_FILE
    partition_by: str = ""
    isolation_level: str = "read_committed"
    table: str = ""

    @property
    def by_day(self) -> bool:
        return self.partition_by == BY_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """One task: [start, end) of a partition. is_again: it was loaded before, into the files `replaces`.

    load: the load that its name ends with; 0: its name is that of its offsets alone.
    """

    topic: str
    partition: int
    start: Offset
    end: Offset
    start_epoch: Epoch
    is_again: bool = False
    replaces: tuple[str, ...] = ()
    load: int = 0

    @property
    def name(self) -> str:
        return range_name(self.topic, self.partition, self.start, self.end, self.load)

    @property
    def is_written_over(self) -> bool:
        return self.is_again and not self.load

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.topic}-{self.partition}, offsets {self.start} to {self.end} (exclusive)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Offsets that were gone from the log before they were loaded, and which the user said to leave out."""

    topic: str
    partition: int
    start: Offset
    end: Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """path: below the folder. crc32c: of the whole file. first, last: offsets; -1 without rows."""

    path: str
    rows: int
    bytes: int
    crc32c: int
    first: int = field(default=-1, compare=False)  # files that were committed before this was noted have none
    last: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRange:
    """notes: for the user, as on records that retention took while they were read.

    is_kept: it was to be loaded again, and its files stayed as they were.
    """

    topic: str
    partition: int
    start: Offset
    end: Offset
    files: tuple[LoadedFile, ...]
    notes: tuple[str, ...] = ()
    is_kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """position: where the partitions stand once it is committed. metadata_offsets: by topic, as in LogSpan."""

    number: int
    load_id: str
    token: str
    layout: Layout
    position: StreamOffset
    ranges: tuple[PlannedRange, ...]
    lost: tuple[Lost, ...] = ()
    metadata_offsets: Mapping[str, Offset]

    def part(self, planned: PlannedRange) -> PartitionRange:
        """As the connector reads it."""
        return PartitionRange(
            topic=planned.topic,
            topic_id=self.position.topic_ids[planned.topic],
            partition=planned.partition,
            start=planned.start,
            end=planned.end,
            metadata_offset=self.metadata_offsets.get(planned.topic, Offset(-1)),
            start_epoch=planned.start_epoch,
        )

    def to_bytes(self) -> bytes:
        return _bytes(
            {
                **_head(self.number, self.load_id, self.token, self.layout),
                "position": self.position.to_json(),
                "metadata_offsets": dict(self.metadata_offsets),
                "ranges": [
                    {
                        **_place(one),
                        "epoch": one.start_epoch,
                        "name": one.name,
                        **({"again": True, "replaces": list(one.replaces), "load": one.load} if one.is_again else {}),
                    }
                    for one in self.ranges
                ],
                "lost": [_place(one) for one in self.lost],
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """position: of every topic that was ever loaded into the folder."""

    number: int
    load_id: str
    token: str
    layout: Layout
    position: StreamOffset
    ranges: tuple[LoadedRange, ...]
    lost: tuple[Lost, ...] = ()

    @property
    def files(self) -> tuple[LoadedFile, ...]:
        return tuple(file for one in self.ranges for file in one.files)

    def to_bytes(self) -> bytes:
        return _bytes(
            {
                **_head(self.number, self.load_id, self.token, self.layout),
                "position": self.position.to_json(),
                "ranges": [
                    {
                        **_place(one),
                        "files": [_file(file) for file in one.files],
                        "notes": list(one.notes),
                        **({"kept": True} if one.is_kept else {}),
                    }
                    for one in self.ranges
                ],
                "lost": [_place(one) for one in self.lost],
            }
        )


def parse_plan(name: str, data: bytes) -> Plan:
    """Raises BadRecord, which names the object."""
    try:
        found = _parsed(data)
        return Plan(
            **_common(found),
            metadata_offsets={topic: Offset(number) for topic, number in found["metadata_offsets"].items()},
            ranges=tuple(
                PlannedRange(
                    **_placed(one),
                    start_epoch=Epoch(one["epoch"]),
                    is_again=one.get("again", False),
                    replaces=tuple(one.get("replaces", ())),
                    load=one.get("load", 0),
                )
                for one in found["ranges"]
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError, QuorumlogError) as error:
        raise _bad(name, error) from error


def parse_commit(name: str, data: bytes) -> Commit:
    """Raises BadRecord, which names the object."""
    try:
        found = _parsed(data)
        return Commit(
            **_common(found),
            ranges=tuple(
                LoadedRange(
                    **_placed(one),
                    files=tuple(_parsed_file(file) for file in one["files"]),
                    notes=tuple(one["notes"]),
                    is_kept=one.get("kept", False),
                )
                for one in found["ranges"]
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError, QuorumlogError) as error:
        raise _bad(name, error) from error


def _head(number: int, load_id: str, token: str, layout: Layout) -> dict[str, Any]:
    options = {
        "rows_per_file": layout.rows_per_file,
        "partition_by": layout.partition_by,
        "isolation_level": layout.isolation_level,
        "table": layout.table,
    }
    return {"v": VERSION, "n": number, "load_id": load_id, "token": token, "options": options}


def _common(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": found["n"],
        "load_id": found["load_id"],
        "token": found["token"],
        "layout": Layout(**found["options"]),
        "position": stream_offset(found["position"]),
        "lost": tuple(Lost(**_placed(one)) for one in found["lost"]),
    }


def _place(one: PlannedRange | LoadedRange | Lost) -> dict[str, Any]:
    return {"topic": one.topic, "partition": one.partition, "start": one.start, "end": one.end}


def _placed(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in ("topic", "partition", "start", "end")}


def _file(file: LoadedFile) -> dict[str, Any]:
    counted = {"path": file.path, "rows": file.rows, "bytes": file.bytes, "crc32c": f"{file.crc32c:08x}"}
    return {**counted, "first": file.first, "last": file.last}


def _parsed_file(one: Mapping[str, Any]) -> LoadedFile:
    return LoadedFile(
        path=one["path"],
        rows=one["rows"],
        bytes=one["bytes"],
        crc32c=int(one["crc32c"], 16),
        first=one.get("first", -1),
        last=one.get("last", -1),
    )


def _bytes(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _parsed(data: bytes) -> dict[str, Any]:
    found = json.loads(data)
    if not isinstance(found, dict) or found.get("v") != VERSION:
        raise BadRecord(f"its version is not {VERSION}: use the quorumlog that wrote it, or a newer one")
    return found


def _bad(name: str, error: Exception) -> BadRecord:
    return BadRecord(f"{name} is not what a load writes ({type(error).__name__}: {error}); was it changed by hand?")


def at(one: PlannedRange | LoadedRange | Lost) -> TopicPartition:
    return one.topic, one.partition
