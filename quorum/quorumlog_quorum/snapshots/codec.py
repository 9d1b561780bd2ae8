"""The bytes of a snapshot: record batches as in the log, with Kafka's control records around them (KIP-630).

    one control batch: SnapshotHeader, then KRaftVersion and Voters if there are any
    data batches: the records that make the image
    one control batch: SnapshotFooter, the last record of the file

Offsets begin at 0 and have no gap. Every batch carries the epoch of the snapshot's id. All timestamps are the one of
the last record that the snapshot contains, so that equal images give equal bytes on every node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quorumlog.ids import Offset
from quorumlog.records import BatchHeader, CorruptRecords, decode_batch, headers, iter_batch, verify_crc
from quorumlog.records.control import (
    ControlRecord,
    KRaftVersion,
    SnapshotFooter,
    SnapshotHeader,
    Voters,
    control_batch,
    decode_control,
)
from quorumlog.records.rowwise.values import encode_values
from quorumlog_storage.rules.fetch_rule import SnapshotId


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHeading:
    """What a snapshot says before its records. id.offset: exclusive end of the records that it stands for.

    last_contained_timestamp_ms: of the last of them, as the log has it. kraft_version: level; None and 0: the voter
    set is static. voters: the set in force at id.offset; None if the file names none.
    """

    id: SnapshotId
    last_contained_timestamp_ms: int
    kraft_version: int | None = None
    voters: Voters | None = None


class SnapshotEncoder:
    """Makes the batches of one snapshot, in order: `begin`, `values` any number of times, `end`."""

    def __init__(self, heading: SnapshotHeading) -> None:
        self._heading = heading
        self._next: Offset = 0

    def begin(self) -> bytes:
        heading = self._heading
        records: list[ControlRecord] = [SnapshotHeader(heading.last_contained_timestamp_ms)]
        if heading.kraft_version is not None:
            records.append(KRaftVersion(heading.kraft_version))
        if heading.voters is not None:
            records.append(heading.voters)
        return self._control(records)

    def values(self, values: Sequence[bytes]) -> bytes:
        """One batch of these records."""
        assert values, "a batch of nothing"
        heading = self._heading
        return encode_values(
            values, self._take_offsets(len(values)), heading.id.epoch, heading.last_contained_timestamp_ms
        )

    def end(self) -> bytes:
        return self._control([SnapshotFooter()])

    def _control(self, records: Sequence[ControlRecord]) -> bytes:
        return control_batch(
            records,
            base_offset=self._take_offsets(len(records)),
            timestamp_ms=self._heading.last_contained_timestamp_ms,
            leader_epoch=self._heading.id.epoch,
        )

    def _take_offsets(self, count: int) -> Offset:
        taken = self._next
        self._next += count
        return taken


class SnapshotCheck:
    """Checks the batches of a snapshot, given in order. `heading` is complete once the first data batch was taken."""

    def __init__(self, snapshot: SnapshotId) -> None:
        self.heading = SnapshotHeading(id=snapshot, last_contained_timestamp_ms=-1)
        self.next_offset: Offset = 0  # how many records were taken, control records included
        self.has_ended = False  # the footer was taken

    def take(self, batches: bytes) -> None:
        """Whole batches. Raises CorruptRecords; its position is counted from their start."""
        for header in headers(batches):
            verify_crc(batches, header)
            self._take_header(header)
            if header.is_control:
                for record in decode_batch(batches, header):
                    self._take_control(decode_control(record.key, record.value), header.position)
            self.next_offset = header.next_offset

    def finish(self, position: int) -> None:
        """The file ends here. Raises CorruptRecords if the snapshot does not."""
        if not self.has_ended:
            raise CorruptRecords(position, "the snapshot has no footer: the file is incomplete")

    def _take_header(self, header: BatchHeader) -> None:
        if self.has_ended:
            raise CorruptRecords(header.position, "a batch follows the footer")
        if header.base_offset != self.next_offset or header.count != header.last_offset_delta + 1:
            reason = (
                f"{header.count} records at offset {header.base_offset}, expected a full batch at {self.next_offset}"
            )
            raise CorruptRecords(header.position, reason)
        if header.leader_epoch != self.heading.id.epoch:
            reason = f"a batch of epoch {header.leader_epoch} in a snapshot of epoch {self.heading.id.epoch}"
            raise CorruptRecords(header.position, reason)
        if self.next_offset == 0 and not header.is_control:
            raise CorruptRecords(header.position, "the snapshot does not begin with its header")

    def _take_control(self, record: ControlRecord, position: int) -> None:
        is_first = self.heading.last_contained_timestamp_ms < 0
        match record:
            case SnapshotHeader(timestamp_ms) if is_first and timestamp_ms >= 0:
                self.heading = replace(self.heading, last_contained_timestamp_ms=timestamp_ms)
            case _ if is_first:
                raise CorruptRecords(position, f"the snapshot begins with {record}, not with its header")
            case SnapshotFooter():
                self.has_ended = True
            case KRaftVersion(level):
                self.heading = replace(self.heading, kraft_version=level)
            case Voters():
                self.heading = replace(self.heading, voters=record)
            case _:
                pass  # of a newer version


def values_of(batches: bytes) -> Iterator[bytes]:
    """The values of all data records in verified batches of a snapshot. Raises CorruptRecords."""
    for header in headers(batches):
        if header.is_control:
            continue
        for record in iter_batch(batches, header):
            if record.value is None:
                raise CorruptRecords(header.position, f"the record at offset {record.offset} has no value")
            yield record.value
