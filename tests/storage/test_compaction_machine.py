"""Compaction against last-write-wins: a reader of committed records gets the last value of each key, whatever is done.

The model is the list of all that was ever written. Tombstones, transactions that commit and abort across segments, maps
that are too small, merged and split segments, crashes at any call, lost snapshots and transaction indexes.

- Nothing is there that was not written, nothing moves, and nothing of an aborted transaction is ever visible.
- The last committed value of each key is visible. A tombstone may be missing only `delete.retention.ms` after the first
  round that had its batch, and then no older value of its key is there.
- Below what a whole round has covered there is exactly that, and no aborted record.
- A producer's last sequence number and the open transactions are known after every start.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from cleaning_samples import (
    DELETE_RETENTION_MS,
    FIRST_MS,
    Entry,
    KeyValue,
    add,
    add_marker,
    batches,
    entries,
    reopened,
    run_round,
    slots,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from storage_samples import PATH, disk_with_data

from jepsen.sim.machine.disk_faults import PowerCut, PowerLost, faults_at
from quorumlog.ids import Offset
from quorumlog.records import Codec, decode_batch, headers
from quorumlog_storage.cleaning.spec import RoundDone
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.transactions import NEVER
from quorumlog_storage.segment.log_config import LogConfig
from tests import rules
from tests.parts import few

PRODUCERS = (1, 2)
PLAIN = -1  # the transaction of a record that has none
ALL_KEYS = 1_000
MOST_ROUNDS = 30
records_of_a_batch = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.sampled_from([None, b"x", b"yy" * 20])),
    min_size=1,
    max_size=4,
)
waits = st.sampled_from([0, 1, DELETE_RETENTION_MS - 1, DELETE_RETENTION_MS])
maps = st.sampled_from([1, 2, 3, ALL_KEYS])
sizes = st.sampled_from([250, 700, 5_000])


class Write(NamedTuple):
    """batch: its base offset. transaction: its number, or PLAIN."""

    offset: Offset
    key: bytes | None
    value: bytes | None
    batch: Offset
    transaction: int


@rules.rule("log 3.12", "log 7.1", "log 7.2", "log 7.5", "log 7.8", "log 7.18")
class CompactionAgainstLastWrite(RuleBasedStateMachine):
    """ended: whether each transaction was committed. began: where the open one of each producer began.
    covered_ms: when a round first had a batch. round_ms: when the last round was. broken_off_at: where the log
    ended when a round last broke off."""

    @initialize(durable=st.booleans())
    def begin(self, durable: bool) -> None:
        self.config = LogConfig(segment_bytes=300, index_interval_bytes=100, remembers_producers=True, durable=durable)
        self.disk = disk_with_data()
        self.log = Log.open(self.disk, PATH, self.config)
        self.writes: list[Write] = []
        self.ended: dict[int, bool] = {}
        self.open: dict[int, int] = {}  # transactions by producer
        self.began: dict[int, Offset] = {}
        self.transactions = 0
        self.producer_of: dict[int, int] = {}  # by transaction
        self.sequences: dict[int, int] = {}
        self.first_dirty: Offset = 0
        self.now_ms = self.round_ms = FIRST_MS
        self.covered_ms: dict[Offset, int] = {}
        self.broken_off_at: Offset = 0

    # --- writing ---

    @rule(records=records_of_a_batch, codec=st.sampled_from([Codec.NONE, Codec.LZ4]))
    def write(self, records: list[KeyValue], codec: Codec) -> None:
        self._note(add(self.log, records, codec=codec), records, PLAIN)

    @rule(producer=st.sampled_from(PRODUCERS), records=records_of_a_batch)
    def write_in_a_transaction(self, producer: int, records: list[KeyValue]) -> None:
        sequence = self.sequences.get(producer, -1) + 1
        base = add(
            self.log, records, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        self.sequences[producer] = sequence + len(records) - 1
        if producer not in self.open:
            self.transactions += 1
            self.open[producer], self.began[producer] = self.transactions, base
            self.producer_of[self.transactions] = producer
        self._note(base, records, self.open[producer])

    @rule(
        producer=st.sampled_from(PRODUCERS),
        runs=st.lists(records_of_a_batch, min_size=1, max_size=3),
        committed=st.booleans(),
    )
    def write_a_transaction(self, producer: int, runs: list[list[KeyValue]], committed: bool) -> None:
        for records in runs:
            self.write_in_a_transaction(producer, records)
        self.end_transaction(producer, committed)

    @rule(producer=st.sampled_from(PRODUCERS), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        if producer in self.open:
            add_marker(self.log, producer, committed=committed)
            self.ended[self.open.pop(producer)] = committed
            del self.began[producer]
            self._replicated()

    def _note(self, base: Offset, records: list[KeyValue], transaction: int) -> None:
        self.writes += [Write(base + n, key, value, base, transaction) for n, (key, value) in enumerate(records)]
        self._replicated()

    def _replicated(self) -> None:
        assert self.log.producers is not None
        self.log.producers.replicated_end = self.log.end_offset

    # --- rounds ---

    @rule(keys=maps, segment_bytes=sizes, max_output_bytes=st.sampled_from([200, 1 << 20]), ms=waits)
    def clean(self, keys: int, segment_bytes: int, max_output_bytes: int, ms: int) -> None:
        self.now_ms += ms
        self.log.roll()
        self._whole_round(self.first_dirty, keys, segment_bytes, max_output_bytes)

    @rule(seed=st.integers(0, 1 << 30), at=st.integers(0, 60), keys=maps, segment_bytes=sizes)
    def crash_in_clean(self, seed: int, at: int, keys: int, segment_bytes: int) -> None:
        """The power goes. What was written before is on disk: this is about the round."""
        self.log.roll()
        self.log.sync()
        end, point = self.log.end_offset, self.log.synced_end
        self.disk.sync_directory("/data")
        self.disk.faults = faults_at({self.disk.operations + at: PowerCut(written=seed % 200)})
        try:
            self._round(self.first_dirty, keys, segment_bytes, 1 << 20)
        except PowerLost:
            pass
        self.disk.faults, self.broken_off_at = faults_at({}), end
        self.disk.crash(random.Random(seed))
        self.log = reopened(self.disk, self.config, recovery_point=point)
        assert self.log.end_offset == end and not self.log.recovery.has_hole
        self._replicated()

    @rule()
    def clean_until_nothing_can_go(self) -> None:
        """Tombstones get their horizon and go, small segments are merged, then markers get their horizon and go."""
        self.log.roll()
        before: object = None
        for _ in range(MOST_ROUNDS):
            done = self._whole_round(0, ALL_KEYS, 300, 1 << 20)
            self.now_ms += DELETE_RETENTION_MS
            found = [(header.base_offset, header.count, header.base_timestamp) for _, header in batches(self.log)]
            if before == (before := (found, self.log.segment_bases)):
                break
        else:
            raise AssertionError("each round changes something")
        left = {entry.offset for entry in entries(self.log) if entry.value is None}
        assert not [offset for offset in left if offset < done.first_dirty], "a tombstone stays for ever"
        there = {header.base_offset for _, header in batches(self.log)}
        for _, header in batches(self.log):
            if header.is_control and header.count and header.last_offset < done.first_dirty:
                data = {one.batch for one in self._transaction_before(header.base_offset, header.producer_id)}
                assert data & there, "the marker of a transaction without data stays for ever"

    def _transaction_before(self, offset: Offset, producer: int) -> list[Write]:
        """What the marker at this offset has ended: numbers of transactions rise with their first offset."""
        own = {write.transaction for write in self.writes if write.transaction != PLAIN and write.offset < offset}
        found = [number for number in own if self.producer_of[number] == producer]
        return [write for write in self.writes if found and write.transaction == max(found)]

    def _whole_round(self, first_dirty: Offset, keys: int, segment_bytes: int, max_output_bytes: int) -> RoundDone:
        done = self._round(first_dirty, keys, segment_bytes, max_output_bytes)
        self.first_dirty = max(self.first_dirty, done.first_dirty)
        if done.first_dirty > first_dirty:
            self._is_exact_below(done.first_dirty)
        return done

    def _round(self, first_dirty: Offset, keys: int, segment_bytes: int, max_output_bytes: int) -> RoundDone:
        """Over the segments that end at or before the last stable offset."""
        view, stable = self.log.view, self._last_stable_offset()
        blocked = [base for base, end in zip(view.bases, view.bases[1:], strict=False) if end > stable]
        boundary = min([*blocked, view.bases[-1]])
        held = [(segment.base_offset, view.limit(number)) for number, segment in enumerate(view.segments)]
        if boundary > first_dirty:
            self.round_ms = self.now_ms
            for write in self.writes:
                if write.batch < boundary:
                    self.covered_ms.setdefault(write.batch, self.now_ms)
        return run_round(
            self.log,
            first_dirty,
            segments=tuple(one for one in held if one[0] < boundary),
            end_offset=boundary,
            beyond=tuple(one for one in held if one[0] >= boundary),
            map_bytes=slots(keys),
            load_factor=1.0,
            segment_bytes=segment_bytes,
            max_output_bytes=max_output_bytes,
            now_ms=self.now_ms,
        )

    def _is_exact_below(self, offset: Offset) -> None:
        newest = {write.key: write.offset for write in self._effective(offset)}
        wanted = {write.offset for write in self._effective(offset) if newest[write.key] == write.offset}
        found = {entry.offset for entry in entries(self.log) if entry.offset < offset}
        assert found <= wanted
        newest = {write.key: write.offset for write in self._effective(max(offset, self.broken_off_at))}
        gone = [write for write in self.writes if write.offset in wanted - found]
        assert all(self._may_be_gone(write) or newest[write.key] > write.offset for write in gone)

    # --- starts ---

    @rule(clean=st.booleans(), lost=st.sampled_from([(), (".snapshot",), (".txnindex", ".snapshot"), (".index",)]))
    def reopen(self, clean: bool, lost: tuple[str, ...]) -> None:
        """All files of these kinds are lost meanwhile."""
        if clean:
            self.log.close()
        self.disk.kill()
        for name in self.disk.list(PATH):
            if name.endswith(lost):
                self.disk.unlink(f"{PATH}/{name}")
        self.log = reopened(self.disk, self.config, clean=clean, recovery_point=self.log.synced_end if clean else 0)
        self._replicated()

    # --- what must be there ---

    def _last_stable_offset(self) -> Offset:
        return min(self.began.values(), default=self.log.end_offset)

    def _effective(self, end: Offset) -> Iterator[Write]:
        """Writes before `end` that count: of no transaction, or of one that was committed."""
        for write in self.writes:
            if write.offset < end and (write.transaction == PLAIN or self.ended.get(write.transaction, False)):
                yield write

    def _may_be_gone(self, write: Write) -> bool:
        covered_ms = self.covered_ms.get(write.batch)
        return write.value is None and covered_ms is not None and covered_ms + DELETE_RETENTION_MS <= self.round_ms

    def _visible(self) -> list[Entry]:
        """What a reader of committed records gets."""
        found: list[Entry] = []
        offset, end = self.log.start_offset, self._last_stable_offset()
        while offset < end:
            part = self.log.read_part(offset, 300, upper_bound=end, committed=True)
            if not part.data:
                return found
            for header in headers(part.data):
                offset = header.next_offset
                hidden = header.is_transactional and any(
                    one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
                    for one in part.aborted
                )
                if not header.is_control and not hidden:
                    found += [
                        Entry(record.offset, record.key, record.value, 0) for record in decode_batch(part.data, header)
                    ]
        return found

    @invariant()
    def the_last_committed_value_of_each_key_is_visible(self) -> None:
        if not hasattr(self, "log"):
            return
        visible = {entry.key: entry for entry in self._visible()}
        newest = {write.key: write for write in self._effective(self._last_stable_offset())}
        for key, write in newest.items():
            found = visible.get(key)
            if found is None:
                assert self._may_be_gone(write), f"{write} is not visible"
            else:
                assert (found.offset, found.value) == (write.offset, write.value), f"{found} in place of {write}"
        assert set(visible) <= set(newest)

    @invariant()
    def nothing_has_moved(self) -> None:
        if not hasattr(self, "log"):
            return
        written = {write.offset: (write.key, write.value) for write in self.writes}
        found = entries(self.log)
        assert [entry.offset for entry in found] == sorted({entry.offset for entry in found})
        assert all(written[entry.offset] == (entry.key, entry.value) for entry in found)
        assert all(entry.timestamp_ms == FIRST_MS + entry.offset for entry in found)
        assert all(
            segment.end_offset() == end
            for segment, end in zip(self.log.view.segments, self.log.view.bases[1:], strict=False)
        )

    @invariant()
    def producers_are_known(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.producers is not None
        for producer, sequence in self.sequences.items():
            entry = self.log.producers.entry(producer)
            assert entry is not None and entry.last_sequence == sequence
        assert self.log.view.unstable.first(self.log.end_offset) == min(self.began.values(), default=NEVER)


TestCompactionAgainstLastWrite = CompactionAgainstLastWrite.TestCase
TestCompactionAgainstLastWrite.settings = settings(max_examples=few(100), stateful_step_count=25, deadline=None)
