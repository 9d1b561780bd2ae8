"""Names of snapshot files, which lie beside the segments of the metadata log, as in Kafka (`Snapshots`).

00000000000000001234-0000000007.checkpoint              a snapshot of all records before offset 1234, the last of
                                                        which was written in epoch 7
00000000000000001234-0000000007-<random>.checkpoint.part    it is being written or fetched
00000000000000001234-0000000007.checkpoint.deleted      retention has removed it; it is freed a little later
00000000000000001234-0000000007.checkpoint.damaged      it could not be read; it is kept for people, never read

Which snapshots a directory holds, and what a start does with them (KIP-630). Pure: names in, decisions out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorumlog.ids import Epoch, Offset
from quorumlog_storage.files.names import OFFSET_DIGITS
from quorumlog_storage.rules.fetch_rule import SnapshotId

EPOCH_DIGITS = 10
SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"
DAMAGED_SUFFIX = ".checkpoint.damaged"

_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint", re.ASCII)
_UNIQUE = re.compile(r"[0-9A-Za-z]{1,32}", re.ASCII)


def snapshot_name(snapshot: SnapshotId) -> str:
    assert snapshot.offset >= 0 and snapshot.epoch >= 0, snapshot
    return f"{snapshot.offset:0{OFFSET_DIGITS}d}-{snapshot.epoch:0{EPOCH_DIGITS}d}{SUFFIX}"


def part_name(snapshot: SnapshotId, unique: str) -> str:
    """unique: letters and digits that no other file of this snapshot has."""
    assert _UNIQUE.fullmatch(unique), unique
    return snapshot_name(snapshot).removesuffix(SUFFIX) + f"-{unique}{PART_SUFFIX}"


def deleted_name(snapshot: SnapshotId) -> str:
    return snapshot_name(snapshot).removesuffix(SUFFIX) + DELETED_SUFFIX


def damaged_name(snapshot: SnapshotId) -> str:
    return snapshot_name(snapshot).removesuffix(SUFFIX) + DAMAGED_SUFFIX


def parse_snapshot_name(name: str) -> SnapshotId | None:
    """The snapshot in the file of this name; None for every other name, the three other suffixes included."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) >= 2**63 or int(found[2]) >= 2**31:
        return None
    return SnapshotId(int(found[1]), int(found[2]))


def parse_damaged_name(name: str) -> SnapshotId | None:
    """The snapshot that was in the file of this name, which `damaged_name` gave it."""
    return parse_snapshot_name(name.removesuffix(DAMAGED_SUFFIX) + SUFFIX) if name.endswith(DAMAGED_SUFFIX) else None


@dataclass(frozen=True, slots=True)
class Listing:
    """snapshots: ascending. The others are names: unfinished, removed by retention, set aside as damaged."""

    snapshots: tuple[SnapshotId, ...]
    parts: tuple[str, ...]
    deleted: tuple[str, ...]
    damaged: tuple[str, ...]


def list_snapshots(names: Iterable[str]) -> Listing:
    """names: of all files in the metadata log's directory."""
    sorted_names = sorted(names)
    found = [snapshot for name in sorted_names if (snapshot := parse_snapshot_name(name)) is not None]
    return Listing(
        snapshots=tuple(sorted(found, key=order)),
        parts=tuple(name for name in sorted_names if name.endswith(PART_SUFFIX)),
        deleted=tuple(name for name in sorted_names if name.endswith(DELETED_SUFFIX)),
        damaged=tuple(name for name in sorted_names if name.endswith(DAMAGED_SUFFIX)),
    )


def order(snapshot: SnapshotId) -> tuple[Offset, Epoch]:
    """Sorts snapshots from the oldest to the newest."""
    return snapshot.offset, snapshot.epoch


def outdated(snapshots: Sequence[SnapshotId], log_start: Offset) -> tuple[SnapshotId, ...]:
    """Those that a start removes: they end before the log begins, and a newer one stands for the gap.

    snapshots: intact ones only, so that a damaged one never causes the deletion of its predecessor.
    """
    if not any(snapshot.offset >= log_start for snapshot in snapshots):
        return ()
    return tuple(snapshot for snapshot in snapshots if snapshot.offset < log_start)
