"""Several replicas of one partition against each other, batch by batch, in the memory of one batch of each.

Compared is what all of them hold and may show to readers: from the largest log start to the smallest high watermark.
Behind a high watermark replicas may differ; what differs there was never committed. Where the nodes were at rest when
they stopped (`to_end`), the replicas are compared to their ends, which must be the same.

Without gaps the batches are the same bytes: offsets, epoch and checksum are compared. Compaction cleans each replica by
itself: where one has gaps, each record that two of them hold must be the same record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords, Record, iter_batch
from quorumlog_storage.audit import files as names
from quorumlog_storage.audit.batches import FoundBatch, read_batches
from quorumlog_storage.audit.finding import Findings, Weight
from quorumlog_storage.audit.log_audit import LogReport, Progress
from quorumlog_storage.files.disk import Disk, DiskError

MAX_DIFFERENCES = 20  # told of each pair; the others follow from the first ones, as a rule


class _At(NamedTuple):
    """A batch, and the file that holds it."""

    path: str
    found: FoundBatch


def compare_replicas(
    disk: Disk,
    replicas: list[LogReport],
    *,
    to_end: bool = False,
    weight: Weight = Weight.FAULT,
    progress: Progress = lambda _: None,
) -> Findings:
    """Each of them against the first one. Their own faults are told by their own audits. weight: of a difference."""
    findings = Findings()
    first = replicas[0]
    for other in replicas[1:]:
        if first.topic_id is not None and other.topic_id is not None and first.topic_id != other.topic_id:
            findings.add(
                "replica-topic-id", other.path, expected=f"topic id {first.topic_id.hex()}, as in {first.path}",
                found=other.topic_id.hex(),
            )  # fmt: skip
            continue
        if to_end and first.end != other.end:
            findings.add(
                "replica-end", other.path, offset=other.end, expected=f"end {first.end}, as {first.path} has",
                found=str(other.end),
            )  # fmt: skip
        try:
            _compare(disk, first, other, _bounds(first, other, to_end), findings, weight, progress)
        except DiskError as error:
            findings.add("unreadable", other.path, expected="readable replicas", found=str(error))
    return findings


def _bounds(first: LogReport, other: LogReport, to_end: bool) -> tuple[Offset, Offset]:
    """[from, until) of what both must hold. A replica that knows no high watermark shows nothing to anybody."""
    until = min(first.end, other.end)
    if not to_end:
        until = min(until, first.high_watermark or 0, other.high_watermark or 0)
    return max(first.start, other.start), until


def _compare(
    disk: Disk, first: LogReport, other: LogReport, bounds: tuple[Offset, Offset], findings: Findings,
    weight: Weight, progress: Progress,
) -> None:  # fmt: skip
    ours, theirs = (_batches(disk, one.path, bounds, progress) for one in (first, other))
    by_record = first.has_gaps or other.has_gaps
    differences = _record_differences(ours, theirs) if by_record else _batch_differences(ours, theirs, first, other)
    for number, (at, offset, expected, found) in enumerate(differences):
        if number == MAX_DIFFERENCES:
            break
        path, position = (at.path, at.found.position) if at is not None else (other.path, None)
        findings.add(
            "replicas-differ", path, position=position, offset=offset, expected=expected, found=found, weight=weight
        )


Difference = tuple[_At | None, Offset, str, str]  # where, offset, expected, found


def _batch_differences(
    ours: Iterator[_At], theirs: Iterator[_At], first: LogReport, other: LogReport
) -> Iterator[Difference]:
    mine, its = next(ours, None), next(theirs, None)
    while mine is not None or its is not None:
        if its is None or (mine is not None and mine.found.header.base_offset < its.found.header.base_offset):
            assert mine is not None
            yield mine, mine.found.header.base_offset, f"the same batch in {other.path}", "none there"
            mine = next(ours, None)
        elif mine is None or its.found.header.base_offset < mine.found.header.base_offset:
            yield its, its.found.header.base_offset, f"the same batch in {first.path}", "none there"
            its = next(theirs, None)
        else:
            if _identity(mine) != _identity(its):
                place = f"{mine.path} at byte {mine.found.position}"
                yield its, its.found.header.base_offset, f"{_identity(mine)}, as {place} has", str(_identity(its))
            mine, its = next(ours, None), next(theirs, None)


def _identity(at: _At) -> tuple[Offset, int, int, str]:
    """Last offset, epoch, size and checksum. The checksum covers all else."""
    header = at.found.header
    return header.last_offset, header.leader_epoch, header.size, f"{header.crc:#010x}"


def _record_differences(ours: Iterator[_At], theirs: Iterator[_At]) -> Iterator[Difference]:
    left, right = _records(ours), _records(theirs)
    mine, its = next(left, None), next(right, None)
    while mine is not None and its is not None:
        if mine[1].offset < its[1].offset:
            mine = next(left, None)
        elif its[1].offset < mine[1].offset:
            its = next(right, None)
        else:
            if mine[1] != its[1]:
                yield its[0], its[1].offset, f"the record that {mine[0].path} has", "another one"
            mine, its = next(left, None), next(right, None)


def _records(batches: Iterator[_At]) -> Iterator[tuple[_At, Record]]:
    for at in batches:
        if not at.found.data or at.found.header.is_control:
            continue
        try:
            for record in iter_batch(at.found.data, at.found.header):
                yield at, record
        except CorruptRecords:
            continue  # told by the replica's own audit


def _batches(disk: Disk, path: str, bounds: tuple[Offset, Offset], progress: Progress) -> Iterator[_At]:
    """The undamaged batches that hold any of [bounds), in order. Raises DiskError."""
    bases = names.classify(disk.list(path), is_metadata=True).by_suffix[names.LOG]
    for number, base in enumerate(bases):
        if base >= bounds[1] or (number + 1 < len(bases) and bases[number + 1] <= bounds[0]):
            continue
        name = f"{path}/{names.file_name(base, names.LOG)}"
        file = disk.open(name)
        try:
            for found in read_batches(file, file.size()):
                if not isinstance(found, FoundBatch):
                    continue
                progress(found.header.size)
                if found.crc_ok and found.header.next_offset > bounds[0] and found.header.base_offset < bounds[1]:
                    yield _At(name, found)
        finally:
            file.close()
