"""A round: pass 1 over the dirty part of a log, pass 2 over all of it up to where pass 1 came.

A generator of steps: its driver waits between them for the throttle, swaps in each group as soon as it is done, and
may stop at any step; then what lies under `.cleaned` is waste, which the next round or start removes.

Pure but for its files: no clock, no thread. Memory: the map, the marks, one piece, one batch decompressed, and one or
two buffers of output.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from quorumlog.ids import Offset
from quorumlog_storage.cleaning.batch_filter import BatchFilter
from quorumlog_storage.cleaning.batches import SourceFile
from quorumlog_storage.cleaning.group import GroupPass, grouped
from quorumlog_storage.cleaning.key_index import KeyIndex, OldBatch
from quorumlog_storage.cleaning.keys import Keys, KeysSpec, MakeKeys, PlainKeys
from quorumlog_storage.cleaning.marks import Marks
from quorumlog_storage.cleaning.offset_map import memory_for
from quorumlog_storage.cleaning.outcomes import Survey
from quorumlog_storage.cleaning.retention import LastWrite
from quorumlog_storage.cleaning.spec import Moved, RoundDone, RoundSpec, Step
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import CLEANED_SUFFIX


def clean(disk: Disk, spec: RoundSpec, make_keys: MakeKeys = PlainKeys) -> Iterator[Step]:
    """make_keys: the form of the work with keys (`keys.py`).

    The last step is RoundDone. Raises CorruptBatch, DiskError; FileMissing where a source has left the log.
    """
    return _Round(disk, spec, make_keys).steps()


class _Round:
    def __init__(self, disk: Disk, spec: RoundSpec, make_keys: MakeKeys) -> None:
        self._disk, self._spec, self._make_keys = disk, spec, make_keys
        self._read = self._written = 0

    def steps(self) -> Iterator[Step]:
        spec, disk = self._spec, self._disk
        _remove_waste(disk, spec.path)
        sources = _sources(spec.path, spec.segments, spec.end_offset)
        if not sources or spec.end_offset <= spec.first_dirty:
            yield RoundDone(spec.first_dirty, False, 0, 0, 0, 0)
            return
        survey, beyond = Survey(), _sources(spec.path, spec.beyond, spec.end_offset)
        is_clean = [source.end_offset <= spec.first_dirty for source in sources]
        dirty = sources[is_clean.index(False) :]
        for size in survey.read(disk, sources[: -len(dirty)]):
            yield self._has_read(size)
        if survey.has_transactions:
            for size in survey.finish(disk, dirty, beyond):
                yield self._has_read(size)
        try:
            keys, marks, index = yield from self._pass_1(survey, dirty, beyond)
        except OldBatch:
            keys, marks, index = yield from self._pass_1(survey, dirty, beyond)
        self._sync_dirty(dirty, index.latest)
        last_writes = {producer: LastWrite(epoch, offset) for producer, epoch, offset in spec.producers}
        needed = sorted(last.last_offset for last in last_writes.values() if last.last_offset >= 0)
        batches = BatchFilter(
            keys,
            index.latest,
            survey.outcomes,
            last_writes,
            now_ms=spec.now_ms,
            delete_retention_ms=spec.delete_retention_ms,
        )
        covered = [source for source in sources if source.base_offset <= index.latest]
        for group in grouped(
            covered,
            old=survey.old,
            segment_bytes=spec.segment_bytes,
            index_bytes=spec.segment_index_bytes,
            index_interval_bytes=spec.index_interval_bytes,
        ):
            group_pass = GroupPass(disk, spec, group, batches, keys, marks, index.latest, needed)
            for read, written in group_pass.steps():
                if read:
                    yield self._has_read(read)
                if written:
                    yield self._has_written(written)
            assert group_pass.cleaned is not None
            yield group_pass.cleaned
        yield RoundDone(
            index.latest + 1,
            index.is_full,
            len(keys),
            keys.keyless,
            bytes_read=self._read,
            bytes_written=self._written,
        )

    def _sync_dirty(self, dirty: Sequence[SourceFile], latest: Offset) -> None:
        """A record goes because a later one of its key is there. That one may be in the page cache only, where
        `durability=replicated`: after a power cut neither would be there. Raises DiskError."""
        for source in dirty:
            if source.base_offset <= latest:
                file = self._disk.open(source.path)
                try:
                    file.sync()
                finally:
                    file.close()

    def _pass_1(
        self, survey: Survey, dirty: Sequence[SourceFile], beyond: Sequence[SourceFile]
    ) -> Generator[Step, None, tuple[Keys, Marks, KeyIndex]]:
        spec = self._spec
        first_dirty = max(spec.first_dirty, dirty[0].base_offset)
        records = spec.end_offset - first_dirty
        marks = Marks(first_dirty, records, spec.marks_bytes)
        memory = memory_for(records, spec.map_bytes, spec.load_factor)
        keys = self._make_keys(KeysSpec(memory, spec.load_factor, spec.hash_key, spec.now_ms), marks)
        index = KeyIndex(keys, marks, survey, spec.first_dirty)
        for size in index.read(self._disk, dirty, beyond, spec.io_buffer_bytes):
            yield self._has_read(size)
        return keys, marks, index

    def _has_read(self, size: int) -> Moved:
        self._read += size
        return Moved(size)

    def _has_written(self, size: int) -> Moved:
        self._written += size
        return Moved(size)


def _sources(path: str, segments: Sequence[tuple[int, int]], end_offset: int) -> list[SourceFile]:
    ends = [*(base for base, _ in segments[1:]), end_offset]
    return [SourceFile(path, base, size, end) for (base, size), end in zip(segments, ends, strict=bool(segments))]


def _remove_waste(disk: Disk, path: str) -> None:
    """What an earlier round has left, durably: a start that met it beside a swap of ours would undo the swap."""
    waste = [name for name in disk.list(path) if name.endswith(CLEANED_SUFFIX)]
    for name in waste:
        disk.unlink(f"{path}/{name}")
    if waste:
        disk.sync_directory(path)
