"""The audit of one log: a partition's directory, or the metadata log's.

The segments are read once, from front to back; every check is fed with the same batches. Checked is:

1. Each batch is whole, its checksum is right, and its records can be read.
2. Offsets increase without a gap, unless the log is compacted; leader epochs never decrease; each segment begins at the
   offset in its name, which is where the one before it ends.
3. `.index`, `.timeindex`, `.txnindex`, producer snapshots and the epoch checkpoint say what the batches say.
4. log start <= high watermark <= end, recovery point <= end (directory_audit.py passes the notes of the log directory).
5. There is no file that is not known.

After an unclean end a torn tail, and whatever concerns offsets behind the recovery point, is a note: the next start
repairs it. After a clean one, and in a directory alone, nothing of that is excused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorumlog.ids import Epoch, Offset, Uuid
from quorumlog.records.format.batch import MAGIC
from quorumlog_storage.audit import files as names
from quorumlog_storage.audit.batches import Damage, FoundBatch, read_batches, record_problem
from quorumlog_storage.audit.entries import TRANSACTION_VERSION, AbortedTransaction
from quorumlog_storage.audit.epochs_check import EpochsCheck
from quorumlog_storage.audit.finding import AsNotes, Findings, Weight
from quorumlog_storage.audit.producers_check import ProducersCheck
from quorumlog_storage.audit.segment_caches import SegmentCaches
from quorumlog_storage.audit.transactions import AbortedIndexCheck, OpenTransactions, check_index_note
from quorumlog_storage.directory.partition_metadata import BadPartitionMetadata, parse_partition_metadata
from quorumlog_storage.files.disk import Disk, DiskError, File, FileMissing

MAX_RELATIVE_OFFSET = 2**31 - 1

Progress = Callable[[int], object]  # told of each number of bytes that were looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of a log beforehand. None: not known.

    clean: its node was stopped in order, or nothing is known: then nothing is excused. compacted: its records may have
    gaps. gaps_between_segments: it was compacted by Kafka, whose segments need not meet. nothing_expired: every
    producer that wrote is still remembered.
    """

    recovery_point: Offset | None = None
    log_start: Offset | None = None
    high_watermark: Offset | None = None
    clean: bool = True
    compacted: bool = False
    gaps_between_segments: bool = False
    nothing_expired: bool = False
    is_metadata: bool = False


@dataclass(slots=True, kw_only=True)
class LogReport:
    """What an audit has seen. start: where the log starts. end: exclusive. last_epoch: of a batch; -1 for none.

    has_gaps: some offsets have no batch.
    """

    path: str
    topic_id: Uuid | None = None
    segments: int = 0
    batches: int = 0
    records: int = 0
    size: int = 0
    start: Offset = 0
    end: Offset = 0
    high_watermark: Offset | None = None
    last_epoch: Epoch = -1
    has_gaps: bool = False
    findings: Findings = field(default_factory=Findings)


def audit_log(disk: Disk, path: str, about: About | None = None, progress: Progress = lambda _: None) -> LogReport:
    """Everything about the log in directory `path`. An error of the disk is a finding. Raises FileMissing."""
    return _Audit(disk, path, about or About(), progress).run()


class _Audit:
    """One audit, from the first segment to the last."""

    def __init__(self, disk: Disk, path: str, about: About, progress: Progress) -> None:
        self._disk, self._path, self._about, self._progress = disk, path, about, progress
        self._files = names.classify(disk.list(path), about.is_metadata)
        self._bases = self._files.by_suffix[names.LOG]
        first = self._bases[0] if self._bases else 0
        self._report = LogReport(path=path, start=max(first, about.log_start or 0), high_watermark=about.high_watermark)
        self._findings = self._report.findings
        self._expected: Offset | None = first  # where the next batch begins; None: not known, behind damage
        self._end: Offset = first
        self._last_epoch: Epoch = -1
        self._epochs = EpochsCheck(first)
        self._transactions = OpenTransactions(is_complete=first == 0)
        self._producers = ProducersCheck(
            first, self._findings, may_be_torn=not about.clean, nothing_expired=about.nothing_expired
        )
        self._snapshots = list(self._files.by_suffix[names.SNAPSHOT])
        self._lax_from = None if about.clean else about.recovery_point or 0
        self._has_damage = False

    def run(self) -> LogReport:
        self._look_at_names()
        for number, base in enumerate(self._bases):
            self._segment(number, base)
        self._compare_snapshots(None)
        self._finish()
        return self._report

    # --- names ---

    def _look_at_names(self) -> None:
        files, findings = self._files, self._findings
        for name in files.unknown:
            findings.add(
                "unknown-file", f"{self._path}/{name}", expected="files of a log", found="a file of no known kind"
            )
        for name in files.interrupted:
            findings.note(
                "interrupted-work", f"{self._path}/{name}", "a file of interrupted work, which a start removes"
            )
        for name in files.kept:
            findings.note("kept-file", f"{self._path}/{name}", "what an earlier start has set aside for people")
        for suffix in names.CACHE_SUFFIXES:
            for base in files.by_suffix[suffix]:
                if base not in self._bases:
                    findings.note(
                        "orphan", self._file(base, suffix), "an index without a segment, which a start removes"
                    )
        self._read_topic_id()

    def _read_topic_id(self) -> None:
        path = f"{self._path}/{names.TOPIC_ID}"
        if names.TOPIC_ID not in self._files.others:
            return
        try:
            self._report.topic_id = parse_partition_metadata(path, self._disk.read_bytes(path))
        except BadPartitionMetadata as error:
            self._findings.add("topic-id", path, expected="a version and a topic id", found=error.reason)
        except DiskError as error:
            self._unreadable(path, error)

    # --- segments ---

    def _segment(self, number: int, base: Offset) -> None:
        is_last = number == len(self._bases) - 1
        path = self._file(base, names.LOG)
        self._meets(path, base)
        try:
            file = self._disk.open(path)
            try:
                size = file.size()
                self._report.segments += 1
                self._report.size += size
                self._batches(path, base, file, size, is_last)
            finally:
                file.close()
        except DiskError as error:  # a finding, which ends the audit of this segment
            self._unreadable(path, error)
            self._expected, self._has_damage = None, True

    def _meets(self, path: str, base: Offset) -> None:
        """The segment begins where the one before it ended."""
        if self._expected is not None and base != self._expected:
            is_excused = base > self._expected and self._about.gaps_between_segments
            self._findings.add(
                "segment-base", path, position=0, offset=base,
                expected=f"a segment from offset {self._expected} on", found=f"one from {base} on",
                weight=Weight.NOTE if is_excused else Weight.FAULT,
            )  # fmt: skip
            self._report.has_gaps = True
        self._expected = base

    def _batches(self, path: str, base: Offset, file: File, size: int, is_last: bool) -> None:
        # Indexes are not synced: after an unclean end they may be torn, and the next start does not trust them.
        findings = self._findings if self._about.clean else AsNotes(self._findings)
        caches = SegmentCaches(self._disk, self._path, base, self._files, findings)
        try:
            if not caches.has_index and not is_last:
                self._findings.note("index-missing", self._file(base, names.INDEX), "no file; it is built when needed")
            for found in read_batches(file, size):
                if isinstance(found, Damage):
                    self._damage(path, found, is_last)
                    self._progress(found.end - found.position)
                    continue
                caches.batch(found)
                self._batch(path, base, found, caches.aborted)
                self._progress(found.header.size)
            caches.finish(self._is_exact)
        finally:
            caches.close()

    def _batch(self, path: str, base: Offset, found: FoundBatch, aborted: AbortedIndexCheck) -> None:
        header, position = found.header, found.position
        self._report.batches += 1
        if not found.crc_ok:
            self._has_damage = True
            told, computed = f"checksum {header.crc:#010x}", f"{found.crc:#010x}"
            self._fault(path, position, header.base_offset, "batch-checksum", told, computed)
            self._expected = None
            return
        self._report.records += header.count
        self._order(path, base, found)
        self._compare_snapshots(header.base_offset)
        problem = record_problem(found)
        if problem:
            self._fault(path, position, header.base_offset, "batch-records", f"{header.count} records", problem)
        if not found.data:
            text = f"a batch of {header.size} bytes, of which only the checksum was looked at"
            self._findings.note("large-batch", path, text, header.base_offset)
        self._epochs.batch(found)
        ended = self._transactions.batch(found)
        self._producers.batch(found, None if ended is None else ended[0])
        if ended is not None and not ended[0].committed:
            self._aborted(found, ended[1], aborted)
        self._expected = self._end = max(self._end, header.next_offset)
        self._last_epoch = max(self._last_epoch, header.leader_epoch)

    def _order(self, path: str, base: Offset, found: FoundBatch) -> None:
        """Offsets and epochs go on from the batch before."""
        header, expected = found.header, self._expected
        begins, ends = header.base_offset, header.last_offset
        wrong: list[tuple[str, str, str]] = []
        if begins < self._end or (expected is not None and begins < expected):
            wrong.append(("batch-offset", f"offset {max(self._end, expected or 0)} or later", str(begins)))
        elif expected is not None and begins > expected and header.magic == MAGIC:
            self._report.has_gaps = True
            if not self._about.compacted:
                wrong.append(("batch-gap", f"offset {expected}", f"{begins}, after a gap"))
        if ends - base > MAX_RELATIVE_OFFSET:
            wrong.append(("batch-offset", f"offsets within 2^31 of {base}", str(ends)))
        if header.leader_epoch < self._last_epoch and header.magic == MAGIC:  # older formats have no epoch
            wrong.append(("batch-epoch", f"epoch {self._last_epoch} or later", str(header.leader_epoch)))
        for check, wanted, is_there in wrong:
            self._fault(path, found.position, begins, check, wanted, is_there)

    def _aborted(self, found: FoundBatch, first: Offset | None, aborted: AbortedIndexCheck) -> None:
        """first: None where its records are gone: deleted at the log's start, or compacted away before the marker."""
        header = found.header
        last_stable = self._transactions.last_stable_offset(header.last_offset)
        if first is None:
            at_most = header.base_offset if self._report.has_gaps else self._report.start
        wanted = AbortedTransaction(
            TRANSACTION_VERSION, header.producer_id, at_most if first is None else first, header.last_offset,
            last_stable,
        )  # fmt: skip
        is_exact = self._is_exact and self._transactions.is_complete
        aborted.aborted(wanted, is_known=first is not None, is_exact=is_exact)

    def _damage(self, path: str, found: Damage, is_last: bool) -> None:
        is_excused = found.torn and is_last and self._lax_from is not None and self._end >= self._lax_from
        self._has_damage = True
        self._findings.add(
            "torn-tail" if found.torn else "batch-header", path, position=found.position, offset=self._end,
            expected="a whole batch", found=f"{found.reason}; {found.end - found.position} bytes are none",
            weight=Weight.NOTE if is_excused else Weight.FAULT,
        )  # fmt: skip
        self._expected = None

    # --- producer snapshots ---

    def _compare_snapshots(self, before: Offset | None) -> None:
        """The producer snapshots up to the batch that comes next. before: its base offset; None: there is none."""
        while self._snapshots and (before is None or self._snapshots[0] <= before):
            offset = self._snapshots.pop(0)
            path = self._file(offset, names.SNAPSHOT)
            if offset > self._end and before is None:
                weight = Weight.FAULT if self._about.clean else Weight.NOTE
                self._findings.add(
                    "snapshot-stray", path, offset=offset,
                    expected=f"none behind the log's end {self._end}", found=f"one of offset {offset}", weight=weight,
                )  # fmt: skip
                continue
            try:
                content = self._disk.read_bytes(path)
            except DiskError as error:
                self._unreadable(path, error)
                continue
            is_exact = self._is_exact
            open_now = self._transactions.first
            rows = self._producers.compare(path, content, offset, open_now, is_exact=is_exact)
            if self._report.batches == 0 and offset == self._end:
                for row in rows:
                    if row.transaction_offset >= 0:
                        open_now[row.producer_id] = row.transaction_offset

    # --- the end ---

    def _finish(self) -> None:
        report, about = self._report, self._about
        report.end, report.last_epoch = self._end, self._last_epoch
        if names.INDEX_NOTE in self._files.others:
            self._read_index_note()
        path = f"{self._path}/{names.EPOCHS}"
        try:
            content = self._disk.read_bytes(path)
        except FileMissing:
            content = None
        except DiskError as error:
            self._unreadable(path, error)
            return
        self._epochs.compare(path, content, report.start, report.end, self._findings, self._lax_from)
        if not self._bases and not about.is_metadata:
            self._findings.note("empty-directory", self._path, "no segment: it was half made, or its log is gone")
        self._offsets(about, report)

    def _read_index_note(self) -> None:
        findings = self._findings if self._about.clean else AsNotes(self._findings)
        try:
            check_index_note(self._disk, self._path, names.INDEX_NOTE, self._bases, findings)
        except DiskError as error:
            self._unreadable(f"{self._path}/{names.INDEX_NOTE}", error)

    def _offsets(self, about: About, report: LogReport) -> None:
        rules = [
            ("recovery-point", about.recovery_point, Weight.FAULT),
            ("high-watermark", about.high_watermark, Weight.FAULT if about.clean else Weight.NOTE),
            ("log-start", about.log_start, Weight.FAULT if about.clean else Weight.NOTE),
        ]
        for check, offset, weight in rules:
            if offset is not None and offset > report.end:
                self._findings.add(
                    check, self._path, offset=offset, expected=f"at most the log's end {report.end}", found=str(offset),
                    weight=weight,
                )  # fmt: skip
        if about.high_watermark is not None and about.high_watermark < report.start:
            text = f"high watermark {about.high_watermark} is below the log's start {report.start}; it is only a hint"
            self._findings.note("high-watermark", self._path, text)

    # --- details ---

    @property
    def _is_exact(self) -> bool:
        """Everything since the log's first offset is there, so what follows from the batches can be computed."""
        return not self._report.has_gaps and not self._has_damage

    def _unreadable(self, path: str, error: DiskError) -> None:
        self._findings.add("unreadable", path, expected="a readable file", found=str(error))

    def _fault(self, path: str, position: int, offset: Offset, check: str, expected: str, found: str) -> None:
        self._findings.add(check, path, position=position, offset=offset, expected=expected, found=found)

    def _file(self, base: Offset, suffix: str) -> str:
        return f"{self._path}/{names.file_name(base, suffix)}"
