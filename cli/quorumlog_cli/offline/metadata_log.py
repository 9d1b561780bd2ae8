"""Reads a metadata log directory offline: its records with their offsets, and the image after them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quorumlog.ids import Epoch, Offset
from quorumlog.records import Record
from quorumlog.records.control import ControlRecord, decode_control, describe_control
from quorumlog_cli.offline.batches import Damage, FoundBatch, log_files, read_batches
from quorumlog_cli.offline.describe import Plain
from quorumlog_cli.offline.snapshots import image_before
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.dump import describe_record
from quorumlog_quorum.metadata.frame import decode_record
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.transactions import HeldBack
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata

DIRECTORY = "__cluster_metadata-0"


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """One record of the log: a control record of the quorum, or a metadata record."""

    offset: Offset
    epoch: Epoch
    timestamp_ms: int
    meaning: Plain  # begins with "type"


def find_metadata_log(place: Path) -> Path:
    """The log in `place`: the log itself, a log directory that contains it, or a node's folder. Raises CliError."""
    for candidate in (place, place / DIRECTORY, place / "data" / DIRECTORY):
        if log_files(candidate):
            return candidate
    raise CliError(Exit.NOT_FOUND, f"{place} holds no metadata log ({DIRECTORY})")


def read_log(place: Path, start: Offset = 0, end: Offset | None = None) -> Iterator[LoggedRecord]:
    """Records of offsets [start, end), of a log's directory or of one file. Raises CliError(DATA_INVALID), BadRecord.

    The offsets inside a snapshot's file are its own, from 0 on.
    """
    for batch, record in _records(place):
        if record.offset < start or (end is not None and record.offset >= end):
            continue
        yield LoggedRecord(record.offset, batch.header.leader_epoch, record.timestamp_ms, meaning(batch, record))


def read_control(directory: Path) -> Iterator[tuple[Offset, Epoch, int, ControlRecord]]:
    """Offset, epoch, timestamp in ms and content of each control record. Raises CliError(DATA_INVALID) at damage."""
    for batch, record in _records(directory):
        if batch.header.is_control:
            control = decode_control(record.key, record.value)
            yield record.offset, batch.header.leader_epoch, record.timestamp_ms, control


def read_image(directory: Path, end: Offset | None = None) -> Image:
    """The image after the records before `end`, without a transaction that is open there.

    One node's files do not show which of its records are committed.

    It begins with the newest snapshot up to `end`. Raises CliError(DATA_INVALID) at damage, BadRecord, ReplayError,
    UnsupportedMetadata.
    """
    base = image_before(directory, end)
    delta, held_back = Delta(base), HeldBack()
    end_offset, epoch = base.offset, base.epoch
    for batch, record in _records(directory):
        if record.offset < base.offset:
            continue
        if record.offset != end_offset:
            what = f"{directory} holds no offset {end_offset}; the next one is {record.offset}"
            raise CliError(Exit.DATA_INVALID, what)
        if end is not None and record.offset >= end:
            break
        if not batch.header.is_control:
            try:
                decoded = decode_record(record.value or b"")
                for delta.next_offset, ready in held_back.take(decoded, record.offset, batch.header):
                    delta.replay(ready)
            except UnsupportedMetadata as error:
                raise error.at(record.offset, delta.metadata_version) from None
        end_offset, epoch = record.offset + 1, batch.header.leader_epoch
    return delta.apply(end_offset, epoch)


def meaning(batch: FoundBatch, record: Record) -> Plain:
    """The record for people; of newer software's record, what is not understood. Raises BadRecord."""
    if batch.header.is_control:
        return describe_control(record)
    try:
        return describe_record(decode_record(record.value or b""))
    except UnsupportedMetadata as error:
        return {"type": "unsupported", "found": error.found, "supported": error.supported}


def _records(place: Path) -> Iterator[tuple[FoundBatch, Record]]:
    """All records of a directory or of one file. A torn batch at the end is being written and is left out."""
    files = [place] if place.is_file() else log_files(place)
    for path in files:
        for found in read_batches(path):
            if isinstance(found, Damage):
                if found.torn and path == files[-1]:
                    return
                raise CliError(Exit.DATA_INVALID, f"{path} at byte {found.position}: {found.reason}")
            if not found.crc_ok:
                raise CliError(Exit.DATA_INVALID, f"{path} at byte {found.position}: wrong checksum")
            for record in found.records():
                yield found, record
