"""Logs that keep everything because of their records' times, by which retention goes (policy.py).

1. A record is dated ahead. Kafka keeps such segments, too, and says nothing. `message.timestamp.after.max.ms` refuses
   such records today; an older software, another setting or a clock that was wrong may have let one in.
2. No record has a timestamp, and nothing says how old they are. Kafka takes the time of the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import FileMissing
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.retention.expiry import Candidate
from quorumlog_storage.retention.policy import NO_TIMESTAMP
from quorumlog_storage.segment.log_file import CorruptBatch

AHEAD_MS = 3_600_000  # the default of message.timestamp.after.max.ms: what is allowed is no fault
LAST_YEAR_MS = 253_402_300_799_000  # the end of the year 9999: later times have no date


class Blocked(NamedTuple):
    """[base_offset, end_offset): up to the end of the segment that keeps all before it.

    timestamp: in ms, the one that keeps it until `until_ms`; NO_TIMESTAMP where no record has one.
    """

    held: PartitionLog
    base_offset: Offset
    end_offset: Offset
    timestamp: int
    until_ms: int

    def describe(self, name: str) -> str:
        """name: of the partition. What is kept, why, and what to do next."""
        topic, _, index = name.rpartition("-")
        deletion = (
            f"delete the records before offset {self.end_offset} (kafka-delete-records.sh, or `quorumlog topic "
            f"truncate {topic} -p {index} --before {self.end_offset}`), or limit retention.bytes"
        )
        if self.timestamp == NO_TIMESTAMP:
            return (
                f"{name} keeps all records from offset {self.base_offset} on for ever: none of them has a timestamp, "
                f"and retention.ms goes by it; {deletion}; a later record that has one lets them go with it, and "
                "message.timestamp.type=LogAppendTime gives one to each"
            )
        return (
            f"{name} keeps all records from offset {self.base_offset} on until {_date(self.until_ms)}: a record before "
            f"offset {self.end_offset} is dated {_date(self.timestamp)}, and retention.ms goes by it; {deletion}, and "
            "keep message.timestamp.after.max.ms low so that no more come"
        )


def find_blocked(candidates: Iterable[Candidate], now_ms: int) -> list[Blocked]:
    """now_ms: wall clock. For any thread. A log that changes meanwhile is left to the next look. Raises DiskError."""
    found = []
    for held, policy, _ in candidates:
        view = held.log.view
        if policy.retention_ms < 0 or view.limit(0) == 0:
            continue
        try:
            largest, end = _first_time(view)
        except (CorruptBatch, FileMissing):
            continue  # a search for expired segments tells it
        if largest == NO_TIMESTAMP or largest > now_ms + AHEAD_MS:
            found.append(Blocked(held, view.start_offset, end, largest, largest + policy.retention_ms))
    return found


def _first_time(view: LogView) -> tuple[int, Offset]:
    """The largest timestamp of the first segment that has one, by which all before it go, and where that one ends.

    NO_TIMESTAMP, and the log's end, where none has.
    """
    for segment, end in zip(view.segments, (*view.bases[1:], view.end_offset), strict=True):
        if segment.largest_timestamp != NO_TIMESTAMP:
            return segment.largest_timestamp, end
    return NO_TIMESTAMP, view.end_offset


def _date(ms: int) -> str:
    if ms > LAST_YEAR_MS:
        return f"{ms} ms after 1970"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
