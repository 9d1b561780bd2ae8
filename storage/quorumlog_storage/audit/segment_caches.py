"""The index files of one segment, opened together and fed with its batches."""

from __future__ import annotations

from quorumlog.ids import Offset
from quorumlog_storage.audit import files as names
from quorumlog_storage.audit.batches import FoundBatch
from quorumlog_storage.audit.finding import Findings
from quorumlog_storage.audit.offset_index_check import OffsetIndexCheck
from quorumlog_storage.audit.time_index_check import TimeIndexCheck
from quorumlog_storage.audit.transactions import AbortedIndexCheck
from quorumlog_storage.files.disk import Disk, DiskError, File


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
