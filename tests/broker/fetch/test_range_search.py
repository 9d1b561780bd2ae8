"""Ranges of a log against a look at every batch: they cover, meet between batches, and tell bytes and times."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replica_cluster import TOPIC_ID, ReplicaCluster, batch

from jepsen.sim.machine.disk import SimDisk, SimFile
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.fetch import DescribedRanges
from quorumlog.records import Record, encode_batch, headers
from quorumlog_broker.fetch.range_search import RangeSearch, WantedRanges
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_ranges import OffsetRange
from quorumlog_storage.rules.isolation import Isolation
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.parts import few

PATH = "/t-0"
MANY = 10_000
# of each batch: offsets that are missing before it, the times of its records, bytes of a record
written = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 5]), st.lists(st.integers(0, 40), min_size=1, max_size=4), st.sampled_from([1, 300])
    ),
    min_size=1,
    max_size=50,
)


@dataclass(frozen=True)
class Stored:
    base: Offset
    end: Offset
    size: int
    largest: int


def filled(of_batches: list[tuple[int, list[int], int]], config: LogConfig) -> tuple[SimDisk, Log, list[Stored]]:
    disk = SimDisk()
    log, all_of_it = Log.open(disk, PATH, config), list[Stored]()
    for gap, times, size in of_batches:
        base = log.end_offset + gap
        data = encode_batch([Record(n, time, None, b"x" * size, ()) for n, time in enumerate(times)])
        log.append([stamped_batches(data, headers(data), base, 1)[0]], gaps=True)
        all_of_it.append(Stored(base, log.end_offset, len(data), max(times)))
    return disk, log, all_of_it


def searched(log: Log, start: Offset, end: Offset, max_bytes: int, enough: int = 0, most: int = MANY) -> RangeSearch:
    search = RangeSearch(log, start, end, WantedRanges(max_bytes=max_bytes, enough_bytes=enough, most=most))
    for _ in range(1_000):
        if search.step():
            return search
    raise AssertionError("the search does not end")


def holding(batches: list[Stored], one: OffsetRange) -> list[Stored]:
    return [b for b in batches if b.base < one.end and b.end > one.start]


@settings(max_examples=few(150), deadline=None)
@given(
    written=written,
    segment_bytes=st.sampled_from([400, 2_000, 1 << 20]),
    interval=st.sampled_from([1, 150, 600]),
    max_bytes=st.sampled_from([0, 1, 500, 2_000]),
    data=st.data(),
    reopened=st.booleans(),
)
def test_ranges_cover_are_disjoint_and_aligned(
    written: list[tuple[int, list[int], int]],
    segment_bytes: int,
    interval: int,
    max_bytes: int,
    data: st.DataObject,
    reopened: bool,
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
    disk, log, batches = filled(written, config)
    if reopened:
        log.close()
        disk.kill()
        log = Log.open(disk, PATH, config, clean=True)
    start = data.draw(st.integers(0, log.end_offset - 1))
    end = data.draw(st.integers(start + 1, log.end_offset))
    search = searched(log, start, end, max_bytes)
    found = search.found
    assert search.has_reached_the_end and (found[0].start, found[-1].end) == (start, end)
    assert all(one.start < one.end for one in found)
    for one, following in pairwise(found):
        assert one.end == following.start
        assert not any(b.base < one.end < b.end for b in batches), "a batch would be decoded twice"
    bases = log.segment_bases
    for one in found:
        held = holding(batches, one)
        assert one.size == sum(b.size for b in held)
        assert one.max_timestamp >= max((b.largest for b in held), default=-1)
        assert sum(one.start < base < one.end for base in bases) == 0, "a range lies in one segment"
        if max_bytes and len(held) > 1:
            assert one.size <= max_bytes + interval + 2 * max(b.size for b in held)
    if not max_bytes:
        assert len(found) == 1 + sum(start < base < end for base in bases)
    most = data.draw(st.integers(1, len(found)))
    part = searched(log, start, end, max_bytes, most=most)
    assert part.found == found[:most] and (part.has_reached_the_end or part.next_offset == found[most].start)
    enough = data.draw(st.integers(1, sum(one.size for one in found) + 1))
    some = searched(log, start, end, max_bytes, enough).found
    assert some == found[: len(some)] and sum(one.size for one in some[:-1]) < enough
    assert some == found or sum(one.size for one in some) >= enough


def test_two_ranges_meet_between_batches_of_several_records() -> None:
    config = LogConfig(segment_bytes=1 << 20, index_interval_bytes=1)
    _, log, batches = filled([(0, [1, 2, 3, 4], 100) for _ in range(20)], config)
    found = searched(log, 0, log.end_offset, 2 * batches[0].size).found
    assert [(one.start, one.end) for one in found] == [(8 * n, 8 * n + 8) for n in range(10)]
    assert {one.size for one in found} == {2 * batches[0].size}


def test_of_whole_segments_no_index_and_little_of_the_log_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, log, batches = filled(
        [(0, [n % 40], 300) for n in range(3_000)], LogConfig(segment_bytes=100_000, index_interval_bytes=400)
    )
    log.close()
    log = Log.open(disk, PATH, LogConfig(segment_bytes=100_000, index_interval_bytes=400), clean=True)
    read, pread = [0], SimFile.pread

    def counted(file: SimFile, position: int, length: int) -> bytes:
        found = pread(file, position, length)
        read[0] += len(found)
        return found

    monkeypatch.setattr(SimFile, "pread", counted)
    whole = searched(log, 0, log.end_offset, 0).found
    assert len(whole) == len(log.segment_bases) and sum(one.size for one in whole) == sum(b.size for b in batches)
    assert [one.max_timestamp for one in whole[:-1]] == [39] * (len(whole) - 1)
    assert read[0] < log.size_bytes / 10


def test_a_leader_describes_what_a_reader_may_read() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    for _ in range(30):
        cluster.produce_batch(1, batch("x", timestamp_ms=1_700_000_000_000))
    node = cluster.nodes[1]

    def ask(start: int, end: int, node_id: int = 1) -> DescribedRanges:
        node = cluster.nodes[node_id]
        queries = node.data_plane.offset_queries
        wanted = WantedRanges(max_bytes=0, enough_bytes=0, most=9)
        isolation = Isolation.HIGH_WATERMARK
        return node.run(queries.describe_ranges(TOPIC_ID, 0, start, end, wanted, isolation=isolation, deadline_ms=0))

    (one,) = ask(3, -1).ranges
    assert (one.start_offset, one.end_offset, one.max_timestamp_ms) == (3, 30, 1_700_000_000_000)
    assert one.size_bytes == 27 * (node.log().size_bytes // 30)
    assert ask(30, -1).ranges == () == ask(5, 5).ranges and ask(0, 99).ranges[-1].end_offset == 30
    node.log().advance_start(20)
    assert ask(0, -1).ranges[0].start_offset == 20
    assert ask(0, -1, node_id=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
