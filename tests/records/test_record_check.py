"""What is inside a produced batch: the check accepts exactly what the plain decoder decodes, and names the record."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from record_strategies import BAD_PAYLOADS, NOW_MS, damaged, records, with_payload

from quorumlog.errors import ErrorCode
from quorumlog.records import Codec, CorruptRecords, Record, decode_batch, encode_batch, headers
from quorumlog.records.format.batch import BATCH_OVERHEAD
from quorumlog.records.format.compression import compress
from quorumlog.records.format.record import write_fields
from quorumlog.records.format.varint import write_varint
from quorumlog.records.validation import record_check, record_walk
from quorumlog.records.validation.record_check import InvalidRecord, RecordRules, check_records, look_at_once
from quorumlog.records.validation.record_walk import HEADERS_PER_STEP, MIN_RUN, RUN_PAUSE
from tests.parts import few
from tests.rules import rule

LIMIT = 1 << 20


def steps_of(data: bytes, *, keys_required: bool = False, max_bytes: int = LIMIT) -> int:
    """How many slices the check took, less one. Raises InvalidRecord. The quick check must never accept more."""
    return looked(data, RecordRules(keys_required), max_bytes)[0]


def looked(data: bytes, rules: RecordRules, max_bytes: int = LIMIT) -> tuple[int, int]:
    """As `steps_of`, and the largest timestamp that was found."""
    header = headers(data)[0]
    at_once = look_at_once(data, header, rules)
    check = check_records(data, header, rules, max_decompressed_bytes=max_bytes)
    steps = 0
    try:
        while True:
            next(check)
            steps += 1
    except StopIteration as ended:
        largest: int = ended.value
    except InvalidRecord:
        assert at_once is None
        raise
    assert at_once is None or (steps, at_once) == (0, largest)
    return steps, largest


def refusal(data: bytes, **options: bool | int) -> InvalidRecord:
    with pytest.raises(InvalidRecord) as caught:
        steps_of(data, **options)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID_RECORD and caught.value.message
    return caught.value


def number_in(error: InvalidRecord) -> int | None:
    """Of the record that was refused, or None where it is the batch."""
    return error.faults[0].number if error.faults else None


def payload_of(written: list[Record]) -> bytes:
    return encode_batch(written)[BATCH_OVERHEAD:]


def alike(count: int, value: bytes = b"value", key: bytes | None = b"key") -> list[Record]:
    return [Record(offset, NOW_MS, key, value) for offset in range(count)]


# --- the oracle ---


def decodes(data: bytes) -> bool:
    try:
        decode_batch(data, headers(data)[0], max_decompressed_bytes=LIMIT)
    except CorruptRecords:
        return False
    return True


def is_accepted(data: bytes) -> bool:
    try:
        steps_of(data)
    except InvalidRecord:
        return False
    return True


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    """Records of which many in a row have one layout, so that they are checked by columns."""
    written: list[Record] = []
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.one_of(st.none(), st.binary(max_size=3), st.just(bytes(100))))
        value = draw(st.one_of(st.none(), st.binary(max_size=3), st.just(bytes(300))))
        header = draw(st.sampled_from([(), (), (), (("h", b"v"),)]))
        times = draw(st.sampled_from([(0,), (0, 1, 5), (0, 100), (-1, 0), (64, 8_000), (2**40, 2**41)]))
        for number in range(draw(st.integers(1, 80))):
            time = NOW_MS + times[number % len(times)]
            written.append(Record(len(written), time, key, value, header))
    return written


@settings(max_examples=few(150))
@given(st.one_of(runs(), records(gaps=False)), st.sampled_from(Codec))
def test_good_batches_are_accepted(written: list[Record], codec: Codec) -> None:
    data = encode_batch(written, codec=codec)
    assert decodes(data)
    assert looked(data, RecordRules())[1] == max(record.timestamp_ms for record in written)


@st.composite
def limits(draw: st.DrawFn) -> RecordRules:
    oldest = draw(st.sampled_from([-(2**63), NOW_MS - 1, NOW_MS, NOW_MS + 5]))
    newest = draw(st.sampled_from([2**63 - 1, NOW_MS, NOW_MS + 1, NOW_MS + 100]))
    return RecordRules(draw(st.booleans()), oldest, newest)


@settings(max_examples=few(150))
@given(st.one_of(runs(), records(gaps=False)), st.sampled_from(Codec), limits())
def test_every_record_that_breaks_a_rule_is_named(written: list[Record], codec: Codec, rules: RecordRules) -> None:
    keyless = {record.offset for record in written if rules.keys_required and record.key is None}
    untimely = {
        record.offset
        for record in written
        if record.timestamp_ms != -1 and not rules.oldest_ms <= record.timestamp_ms <= rules.newest_ms
    }
    data = encode_batch(written, codec=codec)
    if not keyless | untimely:
        looked(data, rules)
        return
    with pytest.raises(InvalidRecord) as caught:
        looked(data, rules)
    assert [fault.number for fault in caught.value.faults] == sorted(keyless | untimely)
    assert caught.value.code is (ErrorCode.INVALID_TIMESTAMP if untimely else ErrorCode.INVALID_RECORD)


def test_a_refusal_names_so_many_records_and_counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_check, "MAX_FAULTS", 3)
    error = refusal(encode_batch(alike(10, key=None)), keys_required=True)
    assert [fault.number for fault in error.faults] == [0, 1, 2] and "10 such records" in error.message


@pytest.mark.parametrize("step_ms", [1, -1, 63, -64, 300, -9_000, 2**21, -(2**34), 2**40])
@pytest.mark.parametrize("turns", ["one way", "both ways"])
def test_the_largest_time_of_a_run(step_ms: int, turns: str) -> None:
    """Deltas of one width, all of one sign or of both, compared by columns."""
    deltas = [step_ms + n % 3 if turns == "one way" or n % 2 else -step_ms - n % 3 for n in range(50)]
    written = [Record(n, NOW_MS + delta, b"key", b"value") for n, delta in enumerate([0, *deltas])]
    assert looked(encode_batch(written), RecordRules())[1] == max(record.timestamp_ms for record in written)


def test_a_batch_without_times_and_one_that_begins_below_zero() -> None:
    assert looked(encode_batch([Record(n, -1, None, b"v") for n in range(20)]), RecordRules(False, 5, 6))[1] == -1
    below = with_payload(payload_of(alike(20)), 20, base_timestamp=-7)
    assert looked(below, RecordRules())[1] == -1


@settings(max_examples=few(400))
@given(st.data(), st.sampled_from(Codec))
def test_damaged_records_are_accepted_exactly_if_they_are_decoded(data: st.DataObject, codec: Codec) -> None:
    written = data.draw(st.one_of(runs(), records(gaps=False)))
    broken = data.draw(damaged(payload_of(written)))
    count = len(written) + data.draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    if count < 1:
        return
    batch = with_payload(bytes(compress(codec, broken)), count, codec, NOW_MS)
    assert is_accepted(batch) == decodes(batch)


@settings(max_examples=few(200))
@given(st.data(), st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]))
def test_damaged_compression_is_accepted_exactly_if_it_is_decoded(data: st.DataObject, codec: Codec) -> None:
    written = data.draw(records(gaps=False))
    broken = data.draw(damaged(bytes(compress(codec, payload_of(written)))))
    batch = with_payload(broken, len(written), codec, NOW_MS)
    assert is_accepted(batch) == decodes(batch)


@settings(max_examples=few(200))
@given(st.data())
def test_damage_of_the_bytes_around_keys_and_values_of_a_run(data: st.DataObject) -> None:
    """One byte of one record in a run, at any place of the record, with any bits."""
    count = data.draw(st.integers(MIN_RUN, 150))
    payload = bytearray(payload_of(alike(count, value=bytes(data.draw(st.sampled_from([0, 1, 70]))))))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    batch = with_payload(bytes(payload), count, 0, NOW_MS)
    assert is_accepted(batch) == decodes(batch)


@settings(max_examples=few(100))
@given(st.one_of(runs(), records(gaps=False)), st.integers(1, 64), st.integers(1, 20))
@example(alike(200), 7, 3)
def test_slices_and_cuts_change_nothing(written: list[Record], slice_bytes: int, slice_records: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_check, "SLICE_BYTES", slice_bytes)
        patched.setattr(record_check, "SLICE_RECORDS", slice_records)
        data = encode_batch(written)
        steps_of(data)
        assert is_accepted(with_payload(data[BATCH_OVERHEAD:-1], len(written), 0, NOW_MS)) is False


# --- the cases ---


@rule("storage 1.7", "log 4.9")
@pytest.mark.parametrize(
    ("payload", "count"), [c[1:] for c in BAD_PAYLOADS if c[2]], ids=[c[0] for c in BAD_PAYLOADS if c[2]]
)
@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("before", [0, 3, 100, 8_200])
def test_bad_records_are_refused_with_their_number(payload: str, count: int, codec: Codec, before: int) -> None:
    """The bad payload alone, and its bytes after good records, where it is bad as well (its offset delta is 0)."""
    good = payload_of(alike(before)) if before else b""
    data = with_payload(bytes(compress(codec, good + bytes.fromhex(payload))), before + count, codec, NOW_MS)
    index = number_in(refusal(data))
    if before:
        assert index == before
    else:
        assert index is None or 0 <= index < count


@pytest.mark.parametrize("count", [1, 63, 64, 65, 8_191, 8_192, 8_193, 20_000])
@pytest.mark.parametrize("value", [b"", b"v" * 90])
@pytest.mark.parametrize("step_ms", [0, 1])
def test_every_width_of_an_offset_delta(count: int, value: bytes, step_ms: int) -> None:
    written = [Record(n, NOW_MS + n * step_ms, None if n % 7 else b"k", value) for n in range(count)]
    steps_of(encode_batch(written))
    steps_of(encode_batch(alike(count, value)))


def raw(index: int, *, attributes: int = 0, size_of_value: int = 0) -> bytes:
    body = bytearray([attributes])
    for number in (0, index, -1, size_of_value):
        write_varint(body, number)
    body += bytes(size_of_value) + b"\x00"
    head = bytearray()
    write_varint(head, len(body))
    return bytes(head + body)


@pytest.mark.parametrize("around", [64, 8_192, 2**20, 2**20 + 8_192])
def test_an_offset_delta_out_of_order_is_refused_wherever_it_stands(around: int) -> None:
    before = b"".join(map(raw, range(around - 20)))
    after = [raw(index) for index in range(around - 20, around + 20)]
    assert is_accepted(with_payload(before + b"".join(after), around + 20))
    for wrong in (0, 19, 20, 39):
        changed = [*after]
        changed[wrong] = raw(around - 20 + wrong + 1)
        assert number_in(refusal(with_payload(before + b"".join(changed), around + 20))) == around - 20 + wrong


def test_the_bits_of_attributes_have_no_meaning() -> None:
    steps_of(with_payload(raw(0, attributes=255), 1))


def test_ff_is_no_batch_of_a_thousand_records() -> None:
    assert number_in(refusal(with_payload(b"\xff" * 7_000, 1_000))) == 0


@rule("log 4.9")
def test_more_records_than_stated_and_fewer() -> None:
    payload = payload_of(alike(100))
    more = refusal(with_payload(payload, 99, 0, NOW_MS))
    assert "after the last record" in more.message and more.faults == ()
    fewer = refusal(with_payload(payload, 101, 0, NOW_MS))
    assert "100 records, the header states 101" in fewer.message and number_in(fewer) == 100


def test_a_time_beyond_64_bits() -> None:
    late = with_payload(bytes.fromhex("0c000200010100"), 1, base_timestamp=2**63 - 1)
    assert "timestamp" in refusal(late).message


@rule("storage 1.8")
@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("missing", [0, 1, 50, 99])
def test_a_key_is_required_where_the_topic_is_compacted(codec: Codec, missing: int) -> None:
    written = alike(100)
    steps_of(encode_batch(written, codec=codec), keys_required=True)
    written[missing] = Record(missing, NOW_MS, None, b"value")
    data = encode_batch(written, codec=codec)
    steps_of(data)
    assert number_in(refusal(data, keys_required=True)) == missing
    assert number_in(refusal(encode_batch(alike(100, key=None)), keys_required=True)) == 0
    steps_of(encode_batch(alike(100, key=b"")), keys_required=True)  # an empty key is a key


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_is_refused_at_the_limit(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_batch([Record(0, NOW_MS, None, bytes(1 << 24))], codec=codec)
    steps_of(data, max_bytes=(1 << 24) + 100)
    seen = 0
    pieces = record_check.decompressed_pieces

    def counted(codec: int, stored: memoryview, max_bytes: int) -> Iterator[bytes]:
        nonlocal seen
        for piece in pieces(codec, stored, max_bytes):
            seen += len(piece)
            yield bytes(piece)

    monkeypatch.setattr(record_check, "decompressed_pieces", counted)
    found = refusal(data, max_bytes=1 << 22)
    assert found.faults == () and "limit of 4194304 bytes" in found.message
    assert seen <= 1 << 22


# --- slices ---


def test_a_usual_batch_is_looked_at_at_once() -> None:
    assert steps_of(encode_batch(alike(1_000, value=bytes(1_000))), max_bytes=1 << 27) == 0
    assert steps_of(encode_batch(alike(8_000, value=bytes(100)))) == 0
    usual = encode_batch([Record(offset, NOW_MS + offset, None, bytes(offset % 7)) for offset in range(100)])
    assert look_at_once(usual, headers(usual)[0])


def test_a_large_batch_is_looked_at_in_slices() -> None:
    mixed = [Record(n, NOW_MS, None, bytes(n * 7 % 11)) for n in range(20_000)]
    assert steps_of(encode_batch(mixed)) >= 4
    assert steps_of(encode_batch(alike(10_000, value=bytes(1_000)), codec=Codec.ZSTD), max_bytes=1 << 27) >= 9


def test_many_headers_are_looked_at_in_slices() -> None:
    out = bytearray()
    write_fields(out, 0, 0, None, None, (("h", None),) * (HEADERS_PER_STEP * 3))
    assert steps_of(with_payload(bytes(out), 1)) >= 3


@pytest.mark.parametrize("ends_with", ["", "00"])
def test_a_damaged_record_with_many_headers_ends_the_last_slice(ends_with: str) -> None:
    """Its headers count as work, but it is not walked over: that must not leave a slice without progress."""
    out = bytearray()
    write_fields(out, 0, 0, None, None, (("h", None),) * 63)
    out[8] = 0x7E  # a name of 63 bytes: the rest no longer fits
    assert number_in(refusal(with_payload(bytes(out) + bytes.fromhex(ends_with), 1))) == 0


def test_records_that_only_seem_alike_are_tried_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same length, but a key whose size changes: a run is not tried for each of them."""
    tries = 0
    run = record_walk._run

    def counted(*arguments: Any) -> tuple[int, int, int]:
        nonlocal tries
        tries += 1
        return run(*arguments)

    monkeypatch.setattr(record_walk, "_run", counted)
    data = encode_batch([Record(n, NOW_MS, bytes(n % 20), bytes(40 - n % 20)) for n in range(10 * RUN_PAUSE)])
    assert list(check_records(data, headers(data)[0])) == []
    assert 1 <= tries <= 11


def test_a_record_that_is_spread_over_many_pieces_is_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_check, "SLICE_BYTES", 1_000)
    walked: list[int] = []
    walk = record_check.walk_usual

    def counted(data: bytes, *rest: int) -> record_walk.Walked:
        walked.append(len(data))
        return walk(data, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(record_check, "walk_usual", counted)
    steps_of(encode_batch([Record(0, NOW_MS, None, bytes(500_000)), Record(1, NOW_MS, None, b"v")]))
    assert sum(walked) < 3 * 500_000


@rule("storage 10.5")
def test_gzip_members_are_read_as_one() -> None:
    payload = payload_of(alike(10))
    members = b"".join(zlib.compress(payload[n : n + 40], wbits=31) for n in range(0, len(payload), 40))
    steps_of(with_payload(members, 10, Codec.GZIP, NOW_MS))
