"""A log against a list: whatever is done to it, and wherever the power goes, it is what the list says.

After a crash the log is a prefix of everything that was ever in it, at least as long as what was synced, without a hole
and without a record that nobody wrote.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from storage_samples import PATH, batch, disk_with_data, read_all

from jepsen.sim.disk_faults import PowerCut, PowerLost, faults_at
from quorumlog.ids import Epoch, Offset
from storage.log import Log
from storage.log_config import LogConfig

Entry = tuple[Offset, Epoch, bytes]


class LogAgainstList(RuleBasedStateMachine):
    """`model`: every record from `start` on, in order."""

    @initialize(segment_bytes=st.integers(256, 900), interval=st.sampled_from([1, 90, 400]))
    def begin(self, segment_bytes: int, interval: int) -> None:
        self.disk = disk_with_data()
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.model: list[Entry] = []
        self.start: Offset = 0
        self.synced: Offset = 0
        self.recovery_point: Offset = 0
        self.epoch: Epoch = 1
        self.written = 0
        self.reopen(clean=False)

    def reopen(self, *, clean: bool) -> None:
        self.log = Log.open(self.disk, PATH, self.config, recovery_point=self.recovery_point, clean=clean)

    @property
    def end(self) -> Offset:
        return self.start + len(self.model)

    def _new_batches(self, sizes: list[int]) -> list[list[bytes]]:
        batches = []
        for size in sizes:
            self.written += 1
            batches.append([b"%d/%d" % (self.written, n) for n in range(size)])
        return batches

    def _append(self, sizes: list[int]) -> None:
        stored, entries, offset = [], [], self.end
        for values in self._new_batches(sizes):
            stored.append(batch(offset, values, self.epoch))
            entries += [(offset + n, self.epoch, value) for n, value in enumerate(values)]
            offset += len(values)
        self.model += entries  # before the write: what a power cut may have kept
        self.log.append(stored)

    def _sync(self) -> None:
        self.log.sync()
        self.synced = self.end

    def _truncate(self, offset: Offset) -> None:
        self.recovery_point = min(self.recovery_point, offset)
        end = self.log.truncate_to(offset)
        assert offset - 5 <= end <= offset
        del self.model[end - self.start :]
        self.synced = min(self.synced, end)

    @rule(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6))
    def append(self, sizes: list[int]) -> None:
        self._append(sizes)

    @rule()
    def sync(self) -> None:
        self._sync()
        assert not self.log.unsynced

    @rule()
    def note_recovery_point(self) -> None:
        self.recovery_point = self.log.synced_end

    @rule(step=st.integers(1, 3))
    def new_epoch(self, step: int) -> None:
        self.epoch += step

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        self._truncate(data.draw(st.integers(self.start, self.end)))
        self.epoch += 1  # an (offset, epoch) is never assigned twice

    @rule(ahead=st.integers(0, 50))
    def truncate_fully(self, ahead: int) -> None:
        self.recovery_point = 0
        self.start = self.synced = self.end + ahead
        self.model = []
        self.log.truncate_fully(self.start)
        self.epoch += 1

    @rule()
    def close_and_open(self) -> None:
        self.log.close()
        self.synced = self.end
        self.disk.kill()
        self.reopen(clean=True)

    @rule()
    def kill(self) -> None:
        """The process dies, the machine does not: nothing written is lost."""
        self.disk.kill()
        self.reopen(clean=False)
        assert self.log.end_offset == self.end
        self.synced = self.end

    @rule(seed=st.integers(0, 1 << 30))
    def crash(self, seed: int) -> None:
        self._after_crash(seed, self.synced)

    @rule(seed=st.integers(0, 1 << 30), at=st.integers(0, 12), sizes=st.lists(st.integers(1, 5), max_size=6))
    def crash_in_append_and_sync(self, seed: int, at: int, sizes: list[int]) -> None:
        def work() -> None:
            self._append(sizes)
            self._sync()

        self._cut_in(work, at, seed)

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 1 << 30), at=st.integers(0, 12), data=st.data())
    def crash_in_truncate(self, seed: int, at: int, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        old = list(self.model)
        synced = self.synced
        self._cut_in(lambda: self._truncate(offset), at, seed, old, min(synced, max(self.start, offset - 5)))

    @rule(seed=st.integers(0, 1 << 30), at=st.integers(0, 12))
    def crash_in_recovery(self, seed: int, at: int) -> None:
        self.disk.crash(random.Random(seed))
        self._cut_in(lambda: self.reopen(clean=False), at, seed + 1)

    def _cut_in(
        self, work: Callable[[], None], at: int, seed: int, old: list[Entry] | None = None, floor: Offset | None = None
    ) -> None:
        self.disk.faults = faults_at({self.disk.operations + at: PowerCut(written=seed % 200)})
        try:
            work()
        except PowerLost:
            self.model = old if old is not None else self.model
            self.synced = floor if floor is not None else self.synced
        self.disk.faults = faults_at({})
        self._after_crash(seed, self.synced)

    def _after_crash(self, seed: int, synced: Offset) -> None:
        self.disk.crash(random.Random(seed))
        self.reopen(clean=False)
        assert synced <= self.log.end_offset <= self.end, (synced, self.log.end_offset, self.end)
        del self.model[self.log.end_offset - self.start :]
        self.synced = self.end
        self.epoch += 1

    @invariant()
    def same_as_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        assert (log.start_offset, log.end_offset, log.synced_end) == (self.start, self.end, self.synced)
        assert read_all(log) == self.model
        starts = [n for n, entry in enumerate(self.model) if n == 0 or entry[1] != self.model[n - 1][1]]
        assert list(log.epochs.entries) == [(self.model[n][1], self.model[n][0]) for n in starts]


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=120, stateful_step_count=25, deadline=None)
