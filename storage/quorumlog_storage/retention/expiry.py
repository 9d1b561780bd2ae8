"""One pass of retention over the logs of one directory, in three kinds of steps.

1. `find_expired` reads: up to which offset each log goes. It runs beside the writer.
2. `note_starts` writes the new starts of all logs of the pass with one write of the offset file, durably.
3. `retire_expired` moves each log's start, and renames the segments before it, some segments at a time.

A log may change between the steps. A start that is noted and was not taken yet is only a plan: a log that is cut below
it forgets it (quorumlog_storage/directory/partition_log.py), and step 3 leaves out a log that ends before it. A crash
after step 2 deletes what the policy had let go by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError, FileMissing
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.retention.policy import Policy, expired
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.segment.log_file import CorruptBatch


class Candidate(NamedTuple):
    """A log that may hold expired segments. high_watermark: no segment that ends after it goes."""

    held: PartitionLog
    policy: Policy
    high_watermark: Offset


class Planned(NamedTuple):
    """The offset before which everything is to go: the end of a segment, at most the high watermark."""

    held: PartitionLog
    start: Offset


def find_expired(candidates: Iterable[Candidate], now_ms: int) -> list[Planned]:
    """Those logs that hold expired segments. now_ms: wall clock. For any thread. Raises LogUnreadable, DiskError."""
    found = []
    for held, policy, high_watermark in candidates:
        start = _expired_before(held.log, policy, high_watermark, now_ms)
        if start is not None:
            found.append(Planned(held, start))
    return found


def note_starts(directories: PartitionDirectories, planned: Iterable[Planned]) -> None:
    """One write for all. In the directory's writer. Raises DiskError."""
    noted = directories.log_starts
    directories.log_starts.update(
        {
            held.partition: start
            for held, start in planned
            if _is_here(held) and noted.get(held.partition) < start <= held.log.end_offset
        }
    )


def retire_expired(planned: Planned, max_segments: int) -> bool:
    """Move the start over at most `max_segments`. True once nothing is left to do. In the directory's writer.

    The active segment is closed first where all of the log is to go: also where the start is at the end already, which
    a follower may have been told before its own look, and the segment would stay. Raises DiskError.
    """
    held, start = planned
    log = held.log
    if not _is_here(held) or not log.start_offset <= start <= log.end_offset:
        return True
    if start == log.end_offset:
        log.roll()
    bases = log.segment_bases
    step = bases[max_segments] if len(bases) > max_segments else start
    held.raise_start(min(start, step))
    return step >= start


def _is_here(held: PartitionLog) -> bool:
    """It was not deleted or set aside, and takes changes."""
    return held.is_here and not held.log.guard.is_closed and held.log.failure is None


def _expired_before(log: Log, policy: Policy, high_watermark: Offset, now_ms: int) -> Offset | None:
    view, cuts = log.view, log.cuts
    ends = _ends(view)
    sizes = [view.limit(number) for number in range(len(ends))]
    try:
        going = expired(view.segments, sizes, ends, policy, high_watermark=high_watermark, now_ms=now_ms)
    except (CorruptBatch, FileMissing) as error:
        if log.cuts != cuts or log.is_abandoned or view.bases[0] != log.view.bases[0]:
            return None  # it changed meanwhile: the next pass looks again
        raise LogUnreadable(log.path, error, log) from error
    except DiskError as error:
        if consequence_of(error) is Consequence.REPLICA_OFFLINE:
            raise LogUnreadable(log.path, error, log) from error
        raise
    return ends[going - 1] if going else None


def _ends(view: LogView) -> Sequence[Offset]:
    return (*view.bases[1:], view.end_offset)
