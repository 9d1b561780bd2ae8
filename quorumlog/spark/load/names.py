"""Names in a folder that a topic is loaded into. Pure.

    topic=orders/p=3/00000000000000120000-00000000000000180000.parquet     one range of offsets, its end exclusive
    dt=2026-11-20/topic=orders/p=3/...                                     with a folder for each day
    topic=orders/rest-1f0c....parquet       of a table: what a load has left of a file that something else has written
    _quorumlog/plan-00000017.json, _quorumlog/commit-00000017.json         what load 17 reads, and what it wrote

A range always has the same name, so a load that is repeated cannot add a second file with the same records. Readers of
Parquet skip what begins with `_`, and what is under way there does not end in .parquet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from quorumlog.ids import Offset

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
