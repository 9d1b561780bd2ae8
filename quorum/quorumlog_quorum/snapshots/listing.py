"""Which snapshots a directory holds, and what a start does with them (KIP-630). Pure: names in, decisions out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorumlog.ids import Epoch, Offset
from quorumlog_quorum.snapshots.names import DAMAGED_SUFFIX, DELETED_SUFFIX, PART_SUFFIX, parse_snapshot_name
from quorumlog_storage.rules.fetch_rule import SnapshotId


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
