"""Logs that keep everything because of one record: it is dated ahead, and retention by time goes by it (policy.py).

Kafka keeps such segments, too, and says nothing. `message.timestamp.after.max.ms` refuses such records today; an older
software, another setting or a clock that was wrong may have let one in.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.disk import FileMissing
from quorumlog_storage.log_file import CorruptBatch
from quorumlog_storage.partition_log import PartitionLog
from quorumlog_storage.retention.expiry import Candidate

AHEAD_MS = 3_600_000  # the default of message.timestamp.after.max.ms: what is allowed is no fault
LAST_YEAR_MS = 253_402_300_799_000  # the end of the year 9999: later times have no date


class Blocked(NamedTuple):
    """The first segment holds [base_offset, end_offset). timestamp: in ms, the one that keeps it until `until_ms`."""

    held: PartitionLog
    base_offset: Offset
    end_offset: Offset
    timestamp: int
    until_ms: int

    def describe(self, name: str) -> str:
        """name: of the partition. What is kept, why, and what to do next."""
        topic, _, index = name.rpartition("-")
        return (
            f"{name} keeps all records from offset {self.base_offset} on until {_date(self.until_ms)}: a record before "
            f"offset {self.end_offset} is dated {_date(self.timestamp)}, and retention.ms goes by it; delete the "
            f"records before offset {self.end_offset} (kafka-delete-records.sh, or `quorumlog topic truncate {topic} "
            f"-p {index} --before {self.end_offset}`), or limit retention.bytes, and keep "
            "message.timestamp.after.max.ms low so that no more come"
        )


def find_blocked(candidates: Iterable[Candidate], now_ms: int) -> list[Blocked]:
    """now_ms: wall clock. For any thread. A log that changes meanwhile is left to the next look. Raises DiskError."""
    found = []
    for held, policy, _ in candidates:
        view = held.log.view
        if policy.retention_ms < 0 or view.limit(0) == 0:
            continue
        try:
            largest = view.segments[0].largest_timestamp
        except (CorruptBatch, FileMissing):
            continue  # a search for expired segments tells it
        if largest > now_ms + AHEAD_MS:
            end = view.bases[1] if len(view.bases) > 1 else view.end_offset
            found.append(Blocked(held, view.start_offset, end, largest, largest + policy.retention_ms))
    return found


def _date(ms: int) -> str:
    if ms > LAST_YEAR_MS:
        return f"{ms} ms after 1970"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
