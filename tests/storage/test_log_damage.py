"""Any bytes in a log's files: it opens as a prefix of good batches, or nothing; and a reader beside a busy writer."""

from __future__ import annotations

import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import PATH, batch, disk_with_data, open_log, raw, read_all

from quorumlog.records import headers
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.names import log_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.recovery.segment_scan import UnknownFormat
from quorumlog_storage.segment.log_config import LogConfig
from tests.parts import few
from tests.rules import rule

GOOD = b"".join(raw(batch(2 * n, [b"%d" % n, b"x"], epoch=1 + n // 2)) for n in range(5))


@rule("storage 3.4", "log 4.6")
@settings(max_examples=few(200), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=3),
    st.integers(0, len(GOOD)),
    st.binary(max_size=80),
    st.booleans(),
)
def test_any_bytes_open_as_a_prefix_of_good_batches(
    changes: list[tuple[int, int]], kept: int, tail: bytes, clean: bool
) -> None:
    content = bytearray(GOOD)
    for position, value in changes:
        content[position] = value
    disk = disk_with_data()
    disk.make_directory(PATH)
    disk.open(f"{PATH}/{log_name(0)}", create=True).pwritev([content[:kept] + tail], 0)
    before = disk.read_bytes(f"{PATH}/{log_name(0)}")
    try:
        log = open_log(disk, LogConfig(), clean=clean)
    except UnknownFormat as refused:  # damage that makes a batch look like one of a later version
        assert any(header.position + 16 in dict(changes) for header in headers(GOOD))
        assert refused.magic > 2 and disk.read_bytes(f"{PATH}/{log_name(0)}") == before
        return
    first_damage = min([kept, *[position for position, value in changes if GOOD[position] != value]])
    untouched = [header for header in headers(GOOD) if header.end <= first_damage]
    assert log.end_offset >= (untouched[-1].next_offset if untouched else 0)
    if not clean:  # a clean start believes the headers
        offsets = [entry[0] for entry in read_all(log)]
        whole = list(range(len(offsets)))
        if offsets != whole:  # the offset of the last batch rotted: nothing after it says that the gap is none
            last = headers(GOOD)[len(offsets) // 2 - 1]
            assert any(last.position <= position < last.position + 8 for position, _ in changes)
            assert offsets[:-2] == whole[:-2] and offsets[-2] < 2**31
    log.append([batch(log.end_offset, [b"goes on"], epoch=max(1, log.last_epoch))])


@rule("storage 11.1", "log 4.8")
def test_a_reader_beside_a_rolling_writer_sees_records_in_order(tmp_path: Path) -> None:
    log = Log.open(RealDisk(), f"{tmp_path}/t-0", LogConfig(segment_bytes=2000, index_interval_bytes=200))
    total, seen, failures = 1500, [0], []

    def read() -> None:
        offset = 0
        try:
            while offset < total:
                bound = log.end_offset
                for header in headers(log.read(offset, 700, upper_bound=bound)):
                    assert header.base_offset == offset and header.next_offset <= bound
                    offset = header.next_offset
            seen[0] = offset
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for offset in range(0, total, 3):
        log.append([batch(offset, [b"a", b"b", b"c"])])
    reader.join(20)
    assert not failures and seen == [total]
