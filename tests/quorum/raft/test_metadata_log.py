"""The newest batches in memory against the log itself, and what is written for each effect."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.records.control import LeaderChange, decode_control
from quorumlog_quorum.disk.metadata_log import RecentBatches, checked_spans, encode
from quorumlog_quorum.raft.effects import AppendFetched, AppendLeaderChange, AppendValues
from quorumlog_quorum.raft.log_state import EpochSpan
from tests.rules import rule


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 40)), min_size=1, max_size=12),
    st.integers(1, 100),
    st.data(),
)
def test_they_give_what_a_log_would(shapes: list[tuple[int, int]], max_bytes: int, data: st.DataObject) -> None:
    recent, batches, end = RecentBatches(0, max_bytes=60), [], 0
    for number, (count, size) in enumerate(shapes):
        batches.append((end, end + count, bytes([number]) * size))
        recent.add(*batches[-1])
        end += count
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            cut = data.draw(st.sampled_from([first for first, _, _ in batches]))
            batches = [batch for batch in batches if batch[0] < cut]
            recent.truncate_to(cut)
            end = cut
    if not batches:
        return
    index = data.draw(st.integers(0, len(batches) - 1))
    bound = data.draw(st.sampled_from([last for _, last, _ in batches[index:]]))
    found = recent.read(batches[index][0], max_bytes, bound)
    wanted = [content for _, last, content in batches[index:] if last <= bound]
    if found is not None:
        joined, taken = b"".join(wanted), len(found)
        assert found == joined[:taken] and taken >= len(wanted[0])
        assert taken <= max(max_bytes, len(wanted[0]))


def test_they_forget_the_oldest_but_keep_one() -> None:
    recent = RecentBatches(5, max_bytes=10)
    recent.add(5, 6, b"a" * 8)
    recent.add(6, 7, b"b" * 8)
    assert recent.read(5, 100, 7) is None and recent.read(6, 100, 7) == b"b" * 8
    recent.add(7, 8, b"c" * 50)
    assert recent.read(7, 1, 8) == b"c" * 50
    assert recent.read(8, 1, 8) is None


@rule("kraft 3.1")
def test_a_leader_change_is_a_control_batch_of_its_epoch() -> None:
    data = encode(AppendLeaderChange(7, 3, 1, (0, 1, 2), (1, 2)), timestamp_ms=1_700_000_000_000)
    (header,) = headers(data)
    assert (header.base_offset, header.leader_epoch, header.is_control, header.count) == (7, 3, True, 1)
    (record,) = decode_batch(data, header)
    assert decode_control(record.key, record.value) == LeaderChange(1, (0, 1, 2), (1, 2))


def test_values_are_one_batch() -> None:
    data = encode(AppendValues(7, 3, [b"a", b"", b"c"]), timestamp_ms=1_700_000_000_000)
    (header,) = headers(data)
    assert (header.base_offset, header.next_offset, header.leader_epoch) == (7, 10, 3)
    assert [record.value for record in decode_batch(data, header)] == [b"a", b"", b"c"]
    assert checked_spans(data) == (EpochSpan(3, 7, 10),)


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=70), st.integers(0, 2**40), st.integers(0, 2**31 - 1))
def test_values_are_encoded_as_any_batch_is(values: list[bytes], offset: int, epoch: int) -> None:
    records = [Record(offset + index, 5, None, value) for index, value in enumerate(values)]
    expected = encode_batch(records, base_offset=offset, leader_epoch=epoch)
    assert encode(AppendValues(offset, epoch, values), timestamp_ms=5) == expected


def test_fetched_batches_are_stored_as_they_came() -> None:
    data = encode(AppendValues(7, 3, [b"a"]), timestamp_ms=1)
    assert encode(AppendFetched(data, (EpochSpan(3, 7, 8),)), timestamp_ms=2) is data


@rule("kraft 4.10")
@given(st.data())
def test_damage_is_noticed(data: st.DataObject) -> None:
    good = bytes(encode(AppendValues(7, 3, [b"value"]), timestamp_ms=1))
    bad = bytearray(good)
    bad[data.draw(st.integers(16, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert checked_spans(bytes(bad)) is None
    assert checked_spans(good[: data.draw(st.integers(1, len(good) - 1))]) is None
