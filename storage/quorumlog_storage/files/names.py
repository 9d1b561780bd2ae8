"""Names of files and directories in a log directory, exactly Kafka's (`LogFileUtils`).

A partition lives in `<topic>-<partition>`; on its way out in `<topic>-<partition>.<32 hex digits>-delete`, set aside
as unknown in `...-stray`, arriving from another directory in `...-future`. A segment's files carry its base offset in
20 digits.

What recovery cuts from a log is kept beside it as `<base>.log.<position>.cut`: the bytes from that position of the
segment on. Neither Kafka nor this loader reads such a file. It is freed by the operator, or with its partition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quorumlog.ids import Offset, Uuid

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
CACHE_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)  # of files that are built again from the log
SNAPSHOT_SUFFIX = ".snapshot"
CUT_SUFFIX = ".cut"
DELETED_SUFFIX = ".deleted"  # of a segment's files that have left the log; freed a little later
CLEANED_SUFFIX, SWAP_SUFFIX = ".cleaned", ".swap"  # behind a segment's names: quorumlog_storage/cleaning/
DELETE, STRAY, FUTURE = "delete", "stray", "future"

MAX_NAME_BYTES = 255  # of one name, on every file system that we know
OFFSET_DIGITS = 20

_SEGMENT = re.compile(r"([0-9]{20})\.(log|index|timeindex|txnindex)", re.ASCII)
_SNAPSHOT = re.compile(r"([0-9]{20})\.snapshot", re.ASCII)
_MARKED = re.compile(r"(\S+-\S+)\.([0-9a-f]{32})-(delete|stray|future)", re.ASCII)
_PARTITION = re.compile(r"(\S+)-([0-9]{1,10})", re.ASCII)


class BadDirectoryName(Exception):
    """A directory that is no partition's, among the partitions."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is not the name of a partition's directory (<topic>-<number>); "
            "move it out of the log directory, which holds nothing but partitions"
        )
        self.name = name


@dataclass(frozen=True, slots=True)
class PartitionName:
    """What a directory's name says. mark: DELETE, STRAY, FUTURE or "" for a partition in use."""

    topic: str
    partition: int
    mark: str = ""


def log_name(base_offset: Offset) -> str:
    return f"{base_offset:0{OFFSET_DIGITS}d}{LOG_SUFFIX}"


def index_name(base_offset: Offset) -> str:
    return f"{base_offset:0{OFFSET_DIGITS}d}{INDEX_SUFFIX}"


def time_index_name(base_offset: Offset) -> str:
    return f"{base_offset:0{OFFSET_DIGITS}d}{TIME_INDEX_SUFFIX}"


def transaction_index_name(base_offset: Offset) -> str:
    return f"{base_offset:0{OFFSET_DIGITS}d}{TXN_INDEX_SUFFIX}"


def cut_suffix(position: int, number: int = 0) -> str:
    """What follows a segment's `.log` where its bytes from `position` on are kept. number: of an older one there."""
    return f".{position}.{number}{CUT_SUFFIX}" if number else f".{position}{CUT_SUFFIX}"


def parse_segment_name(name: str) -> tuple[Offset, str] | None:
    """(base offset, suffix) of a `.log`, `.index`, `.timeindex` or `.txnindex` file; None for any other name."""
    found = _SEGMENT.fullmatch(name)
    if found is None or int(found[1]) >= 2**63:
        return None
    return int(found[1]), f".{found[2]}"


def snapshot_name(offset: Offset) -> str:
    """Of what is remembered of producers before `offset`."""
    return f"{offset:0{OFFSET_DIGITS}d}{SNAPSHOT_SUFFIX}"


def parse_snapshot_name(name: str) -> Offset | None:
    """The offset of a producer snapshot; None for any other name."""
    found = _SNAPSHOT.fullmatch(name)
    return int(found[1]) if found is not None and int(found[1]) < 2**63 else None


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def marked_directory(topic: str, partition: int, unique: Uuid, mark: str) -> str:
    """The name under which a partition is deleted, set aside or moved in. A long topic name is cut to fit."""
    assert mark in (DELETE, STRAY, FUTURE)
    rest = f"-{partition}.{unique.hex()}-{mark}"
    return topic[: MAX_NAME_BYTES - len(rest)] + rest


def parse_directory(name: str) -> PartitionName:
    """Raises BadDirectoryName. A name that ends in -delete but holds no unique part is refused, as Kafka does."""
    marked = _MARKED.fullmatch(name)
    plain, mark = (marked[1], marked[3]) if marked else (name, "")
    found = _PARTITION.fullmatch(plain)
    if found is None or int(found[2]) >= 2**31:
        raise BadDirectoryName(name)
    return PartitionName(found[1], int(found[2]), mark)
