"""The index files of one segment, opened together and fed with its batches.

Offset index: each entry of an `.index` file names a batch of its segment: where it begins, and its last offset.

Time index: each entry of a `.timeindex` file is the largest timestamp up to a batch of its segment, and that batch's
offset.

Rules of it (Kafka's `TimeIndex` and `kafka-dump-log`):

1. Timestamps and offsets strictly increase; the last entry may repeat the one before it, because Kafka appends the
   segment's largest timestamp once more when the segment is closed.
2. The offset lies in a batch whose largest timestamp is the entry's.
3. No batch up to that one has a larger timestamp.
4. The last entry has the largest timestamp of the segment: it is appended when the segment is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.ids import Offset
from quorumlog_storage.audit import files as names
from quorumlog_storage.audit.batches import FoundBatch
from quorumlog_storage.audit.entries import OFFSET_ENTRY, TIME_ENTRY, OffsetEntry, TimeEntry, read_entries
from quorumlog_storage.audit.finding import Findings
from quorumlog_storage.audit.transactions import AbortedIndexCheck
from quorumlog_storage.files.disk import Disk, DiskError, File


class OffsetIndexCheck:
    """Fed with the segment's batches in order."""

    def __init__(self, path: str, file: File, base_offset: Offset, findings: Findings) -> None:
        self._path, self._base, self._findings = path, base_offset, findings
        self._size = file.size()
        self._entries = self._increasing(read_entries(file, self._size, OFFSET_ENTRY))
        self._next = next(self._entries, None)

    def batch(self, found: FoundBatch) -> None:
        while self._next is not None and self._next[1].position < found.position:
            self._lands_nowhere()
        if self._next is None or self._next[1].position != found.position:
            return
        at, entry = self._next
        offset = self._base + entry.relative_offset
        if offset != found.header.last_offset:
            self._fault(
                at, offset, f"{found.header.last_offset}, the last offset of the batch at byte {found.position}"
            )
        self._next = next(self._entries, None)

    def finish(self) -> None:
        while self._next is not None:
            self._lands_nowhere()
        if self._size % OFFSET_ENTRY.size:
            self._findings.add(
                "index-size", self._path, expected=f"entries of {OFFSET_ENTRY.size} bytes", found=f"{self._size} bytes"
            )

    def _lands_nowhere(self) -> None:
        assert self._next is not None
        at, entry = self._next
        found = f"offset {self._base + entry.relative_offset} at byte {entry.position}, where none begins"
        self._findings.add(
            "index-position", self._path, position=at, offset=self._base + entry.relative_offset,
            expected="the position of a batch", found=found,
        )  # fmt: skip
        self._next = next(self._entries, None)

    def _increasing(self, entries: Iterator[tuple[int, tuple[int, ...]]]) -> Iterator[tuple[int, OffsetEntry]]:
        """The entries that may follow each other; a fault for each of the others."""
        last = OffsetEntry(-1, -1)
        for at, fields in entries:
            entry = OffsetEntry(*fields)
            if entry == (0, 0):  # the first batch of a segment is never indexed
                self._findings.add("index-padding", self._path, position=at, expected="an entry", found="zeroes")
                return
            if entry.relative_offset <= last.relative_offset or entry.position <= last.position:
                self._findings.add(
                    "index-order", self._path, position=at, offset=self._base + entry.relative_offset,
                    expected=f"more than {tuple(last)} in both columns", found=str(tuple(entry)),
                )  # fmt: skip
                continue
            last = entry
            yield at, entry

    def _fault(self, at: int, offset: Offset, expected: str) -> None:
        self._findings.add("index-offset", self._path, position=at, offset=offset, expected=expected, found=str(offset))


class TimeIndexCheck:
    """Fed with the segment's batches in order."""

    def __init__(self, path: str, file: File, base_offset: Offset, findings: Findings) -> None:
        self._path, self._base, self._findings = path, base_offset, findings
        self._size = file.size()
        self._entries = self._increasing(read_entries(file, self._size, TIME_ENTRY))
        self._next = next(self._entries, None)
        self._largest = -1  # timestamp of the batches so far
        self._told = -1  # timestamp of the last entry that follows the rules

    def batch(self, found: FoundBatch) -> None:
        header = found.header
        self._largest = max(self._largest, header.max_timestamp)
        while self._next is not None and self._base + self._next[1].relative_offset <= header.last_offset:
            at, entry = self._next
            offset = self._base + entry.relative_offset
            if offset < header.base_offset:
                self._fault("offset", at, offset, "an offset of a batch", f"{offset}, which no batch has")
            elif entry.timestamp_ms != header.max_timestamp:
                text = f"{header.max_timestamp} ms, the largest of the batch at byte {found.position}"
                self._fault("timestamp", at, offset, text, f"{entry.timestamp_ms} ms")
            elif entry.timestamp_ms < self._largest:
                text = f"{self._largest} ms, which a batch before it has"
                self._fault("timestamp", at, offset, text, f"{entry.timestamp_ms} ms")
            self._told = entry.timestamp_ms
            self._next = next(self._entries, None)

    def finish(self) -> None:
        while self._next is not None:
            at, entry = self._next
            offset = self._base + entry.relative_offset
            self._fault("offset", at, offset, "an offset of the segment", f"{offset}, which is behind its end")
            self._next = next(self._entries, None)
        if self._told < self._largest:
            text = f"an entry with {self._largest} ms, the largest of the segment"
            self._findings.add("timeindex-lacks", self._path, position=self._size, expected=text, found="its end")
        if self._size % TIME_ENTRY.size:
            self._findings.add(
                "timeindex-size", self._path,
                expected=f"entries of {TIME_ENTRY.size} bytes", found=f"{self._size} bytes",
            )  # fmt: skip

    def _increasing(self, entries: Iterator[tuple[int, tuple[int, ...]]]) -> Iterator[tuple[int, TimeEntry]]:
        last: TimeEntry | None = None
        for at, fields in entries:
            entry = TimeEntry(*fields)
            if entry == (0, 0) and (last is not None or self._size > TIME_ENTRY.size):
                self._findings.add(
                    "timeindex-padding", self._path, position=at, expected="an entry", found="zeroes"
                )  # fmt: skip
                return
            is_repeated = entry == last and at + 2 * TIME_ENTRY.size > self._size
            if last is not None and not is_repeated and not _follows(entry, last):
                text = f"more than {tuple(last)} in both columns"
                self._fault("order", at, self._base + entry.relative_offset, text, str(tuple(entry)))
                continue
            if not is_repeated:
                yield at, entry
            last = entry

    def _fault(self, what: str, at: int, offset: Offset, expected: str, found: str) -> None:
        self._findings.add(f"timeindex-{what}", self._path, position=at, offset=offset, expected=expected, found=found)


def _follows(entry: TimeEntry, last: TimeEntry) -> bool:
    return entry.timestamp_ms > last.timestamp_ms and entry.relative_offset > last.relative_offset


class SegmentCaches:
    """Close it. has_index: there is an offset index. An index that cannot be opened is a finding."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base: Offset,
        files: names.LogFiles,
        findings: Findings,
    ) -> None:
        self._disk, self._directory, self._base, self._findings = disk, directory, base, findings
        self._opened: list[File] = []
        self.checks: list[OffsetIndexCheck | TimeIndexCheck] = []
        index, times, aborted = (self._open(suffix, files) for suffix in names.CACHE_SUFFIXES)
        self.has_index = index is not None
        if index is not None:
            self.checks.append(OffsetIndexCheck(self._path(names.INDEX), index, base, findings))
        if times is not None:
            self.checks.append(TimeIndexCheck(self._path(names.TIME_INDEX), times, base, findings))
        self.aborted = AbortedIndexCheck(self._path(names.TRANSACTION_INDEX), aborted, findings)

    def batch(self, found: FoundBatch) -> None:
        for check in self.checks:
            check.batch(found)

    def finish(self, is_exact: bool) -> None:
        """is_exact: the log has no gap so far."""
        for check in self.checks:
            check.finish()
        self.aborted.finish(is_exact)

    def close(self) -> None:
        for file in self._opened:
            file.close()

    def _open(self, suffix: str, files: names.LogFiles) -> File | None:
        if self._base not in files.by_suffix[suffix]:
            return None
        path = self._path(suffix)
        try:
            file = self._disk.open(path)
        except DiskError as error:
            self._findings.add("unreadable", path, expected="a readable file", found=str(error))
            return None
        self._opened.append(file)
        return file

    def _path(self, suffix: str) -> str:
        return f"{self._directory}/{names.file_name(self._base, suffix)}"
