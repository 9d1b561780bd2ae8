"""The snapshots of a metadata log, read from their files. Nothing is changed, so the node may run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_quorum.metadata.frame import BadRecord, ReplayError
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder, WrongState
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.snapshots import (
    CorruptSnapshot,
    SnapshotId,
    SnapshotReader,
    list_snapshots,
    parse_snapshot_name,
    snapshot_name,
    values_of,
)
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import FileMissing


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """problem: what is wrong with it; empty for an intact one. records: without the control records."""

    id: SnapshotId
    path: Path
    size: int
    last_contained_timestamp_ms: int
    records: int
    problem: str = ""


def snapshots_in(directory: Path) -> tuple[SnapshotId, ...]:
    """Oldest first."""
    return list_snapshots(entry.name for entry in directory.iterdir()).snapshots


def find_snapshots(directory: Path, *, contents: bool) -> Iterator[FoundSnapshot]:
    """Each one of a metadata log's directory, verified; oldest first. contents: replay the records, too."""
    for snapshot in snapshots_in(directory):
        found = look_at(directory / snapshot_name(snapshot), snapshot, contents=contents)
        if found is not None:
            yield found


def look_at(path: Path, snapshot: SnapshotId, *, contents: bool) -> FoundSnapshot | None:
    """None if it is gone: retention of the running node has removed it."""
    try:
        reader = SnapshotReader(RealDisk(), str(path), snapshot)
    except FileMissing:
        return None
    problem = ""
    try:
        _read(reader, ImageBuilder() if contents else None)
    except CorruptSnapshot as error:
        problem = f"at byte {error.position}: {error.reason}"
    except (WrongState, BadRecord, ReplayError, CorruptRecords, UnsupportedMetadata) as error:
        problem = str(error)
    timestamp_ms = reader.heading.last_contained_timestamp_ms
    return FoundSnapshot(snapshot, path, reader.size, timestamp_ms, reader.records, problem)


def image_before(directory: Path, end: Offset | None) -> Image:
    """The image of the newest snapshot up to `end`; the empty one if there is none. Raises CliError(DATA_INVALID)."""
    usable = [one for one in snapshots_in(directory) if one.offset > 0 and (end is None or one.offset <= end)]
    if not usable:
        return EMPTY
    return read_image_of(directory / snapshot_name(usable[-1]), usable[-1])


def read_image_of(path: Path, snapshot: SnapshotId) -> Image:
    """Raises CliError(DATA_INVALID) for a damaged one."""
    builder = ImageBuilder()
    try:
        _read(SnapshotReader(RealDisk(), str(path), snapshot), builder)
        return builder.finish().apply(snapshot.offset, snapshot.epoch)
    except (CorruptSnapshot, WrongState, BadRecord, ReplayError, CorruptRecords) as error:
        raise CliError(Exit.DATA_INVALID, f"{path}: {error}") from error


def snapshot_of(path: Path) -> SnapshotId | None:
    """The snapshot that this file is, by its name."""
    return parse_snapshot_name(path.name)


def _read(reader: SnapshotReader, builder: ImageBuilder | None) -> None:
    while batches := reader.read():
        if builder is not None:
            for _ in builder.add(values_of(batches)):
                pass
    if builder is not None:
        builder.finish()
