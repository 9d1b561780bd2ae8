"""Each entry of an `.index` file names a batch of its segment: where it begins, and its last offset."""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.ids import Offset
from quorumlog_storage.audit.batches import FoundBatch
from quorumlog_storage.audit.entries import OFFSET_ENTRY, OffsetEntry, read_entries
from quorumlog_storage.audit.finding import Findings
from quorumlog_storage.files.disk import File


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
