"""The indexes of one segment against bisect over a list of its batches, whatever is done to them and to their files."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, count
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from storage_samples import PATH

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset
from quorumlog.records import Record, encode_batch
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.files.names import index_name, time_index_name
from quorumlog_storage.segment.batch import StoredBatch, received_batches
from quorumlog_storage.segment.segment import Segment
from tests import rules
from tests.parts import few

BASE = 1_000
DAMAGES = ("none", "removed", "emptied", "torn", "bit flipped", "zeroes", "zeroes behind it")


class Written(NamedTuple):
    """One batch. last: its last offset."""

    position: int
    last: Offset
    time: int


def made(base: Offset, time: int, records: int) -> StoredBatch:
    data = encode_batch(
        [Record(base + n, time, None, b"", ()) for n in range(records)], base_offset=base, leader_epoch=1
    )
    return received_batches(data)[0]


@rules.rule("log 4.3", "log 4.4", "log 5.4")
class IndexesAgainstBisect(RuleBasedStateMachine):
    @initialize(interval=st.sampled_from([1, 100, 300]), rising=st.booleans(), bound=st.sampled_from([1, 1 << 20]))
    def begin(self, interval: int, rising: bool, bound: int) -> None:
        """rising: times never fall. bound: on the bytes of loaded indexes."""
        self.disk = SimDisk()
        self.disk.resources = LogResources(index_bytes_max=bound)
        self.disk.make_directory("/data")
        self.disk.make_directory(PATH)
        self.interval, self.rising, self.bound = interval, rising, bound
        self.batches: list[Written] = []
        self.next_time = count(7, 3)
        self.segment = Segment(self.disk, PATH, BASE, interval)
        self.segment.create()

    @property
    def end(self) -> Offset:
        return self.batches[-1].last + 1 if self.batches else BASE

    @rule(times=st.lists(st.integers(-1, 60), min_size=1, max_size=12), gap=st.integers(0, 3), size=st.integers(1, 3))
    def append(self, times: list[int], gap: int, size: int) -> None:
        """gap: offsets that are left out before the first batch."""
        base, position, new = self.end + gap, self.segment.size, []
        for time in times:
            time = next(self.next_time) if self.rising else time
            new.append(made(base, time, size))
            self.batches.append(Written(position, base + size - 1, time))
            base, position = base + size, position + new[-1].size
        self.segment.append(new)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        kept = data.draw(st.integers(0, len(self.batches)))
        if kept == len(self.batches):
            return
        self.segment.truncate_to(self.batches[kept].position)
        self.segment.remove_caches()
        self.segment.log.cut()
        del self.batches[kept:]

    @rule()
    def flush(self) -> None:
        """For a file that is closed or to make room in memory; the segment may be written to afterwards."""
        self.segment.flush_caches()
        self.disk.resources.indexes.empty()

    @rule()
    def rebuild(self) -> None:
        self.segment.indexes.rebuild()
        self.segment.save_rebuilt()

    @rule(data=st.data(), of_offsets=st.sampled_from(DAMAGES), of_times=st.sampled_from(DAMAGES), mended=st.booleans())
    def reopen(self, data: st.DataObject, of_offsets: str, of_times: str, mended: bool) -> None:
        self.segment.flush_caches()
        self._damage(index_name(BASE), of_offsets, 8, data)
        self._damage(time_index_name(BASE), of_times, 12, data)
        self.disk.kill()
        self.disk.resources = LogResources(index_bytes_max=self.bound)
        self.segment = Segment(self.disk, PATH, BASE, self.interval)
        if mended:
            self.segment.indexes.mend()

    def _damage(self, name: str, damage: str, entry_bytes: int, data: st.DataObject) -> None:
        path = f"{PATH}/{name}"
        content = bytearray(self.disk.read_bytes(path))
        if damage == "none" or not content:
            return
        self.disk.unlink(path)
        match damage:
            case "removed":
                return
            case "emptied":
                content.clear()
            case "torn":
                at = data.draw(st.integers(0, len(content) - 1))
                del content[at - at % entry_bytes + 1 if not self.rising else at :]  # see index_pair.py on lost entries
            case "bit flipped":
                at = data.draw(st.integers(0, len(content) - 1))
                content[at] ^= 1 << data.draw(st.integers(0, 7))
            case "zeroes":
                content[:] = bytes(len(content))
            case "zeroes behind it":
                content.extend(bytes(2 * entry_bytes))
        self.disk.open(path, create=True).pwritev([content], 0)

    # --- always ---

    @invariant()
    def offsets_are_found(self) -> None:
        if not hasattr(self, "segment"):
            return
        segment, lasts = self.segment, [batch.last for batch in self.batches]
        for offset in {BASE, self.end, *lasts[::3], *(last + 1 for last in lasts[::5])}:
            found = bisect_left(lasts, offset)
            want = self.batches[found].position if found < len(lasts) else segment.size
            assert segment.find(offset, segment.size) == want
        assert segment.end_offset() == self.end

    @invariant()
    def times_are_found(self) -> None:
        if not hasattr(self, "segment"):
            return
        segment, peaks = self.segment, list(accumulate((batch.time for batch in self.batches), max))
        for time in {0, *(peak + off for peak in peaks for off in (0, 1))} if self.batches else ():
            begin = segment.indexes.seek_time(time, segment.size)
            got = next((at for at, header in segment.log.walk(begin, segment.size) if header.max_timestamp >= time), -1)
            found = bisect_left(peaks, time)
            assert got == (self.batches[found].position if found < len(peaks) else -1), time

    @invariant()
    def the_largest_time_is_known(self) -> None:
        if not hasattr(self, "segment"):
            return
        segment, peaks = self.segment, list(accumulate((batch.time for batch in self.batches), max))
        largest = peaks[-1] if peaks else -1
        offset = self.batches[bisect_left(peaks, largest)].last if largest >= 0 else -1
        assert segment.largest_timestamp == largest
        if peaks and largest >= 0:
            assert segment.indexes.times.largest.relative_offset == offset - segment.base_offset
        assert segment.first_timestamp == (self.batches[0].time if self.batches else -1)
        for number in range(0, len(peaks), 4):
            below = segment.indexes.largest_below(self.batches[number].position) if number else None
            assert below is None or below.timestamp == peaks[number - 1]


TestIndexesAgainstBisect = IndexesAgainstBisect.TestCase
TestIndexesAgainstBisect.settings = settings(max_examples=few(120), stateful_step_count=15, deadline=None)
