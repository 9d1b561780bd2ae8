"""`.snapshot` files: Kafka's bytes, five batches where there are five, and no damage that goes unseen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.records.format.crc import crc32c
from quorumlog_storage.producers.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from quorumlog_storage.producers.producer_state import ProducerEntry, Remembered
from tests.rules import rule

GOLDEN = bytes.fromhex(
    "00015b5ba59a0000000100000000000003e8000300000004000000000000000e000000040000018bcfe5680000000007ffffffffffffffff"
)
KNOWN = {1000: ProducerEntry(3, (Remembered(4, 14, 4, 1_700_000_000_000),), 1_700_000_000_000, coordinator_epoch=7)}

batches = st.lists(
    st.builds(
        Remembered, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), st.integers(0, 1000), st.integers(-1, 2**60)
    ),
    max_size=5,
).map(tuple)


@st.composite
def entries(draw: st.DrawFn) -> dict[int, ProducerEntry]:
    found = {}
    for producer_id in draw(st.lists(st.integers(0, 2**63 - 1), max_size=6, unique=True)):
        known = draw(batches)
        timestamp = known[-1].timestamp if known else draw(st.integers(-1, 2**60))
        found[producer_id] = ProducerEntry(draw(st.integers(0, 32767)), known, timestamp)
    return found


@rule("storage 10.9")
def test_kafkas_bytes() -> None:
    assert decode_snapshot("f", GOLDEN) == KNOWN
    assert encode_snapshot(KNOWN) == GOLDEN


def test_an_empty_one_is_ten_bytes() -> None:
    content = encode_snapshot({})
    assert content == b"\x00\x01" + crc32c(bytes(4)).to_bytes(4, "big") + bytes(4)
    assert decode_snapshot("f", content) == {}


@rule("log 6.6")
@given(entries())
def test_round_trip_in_order(state: dict[int, ProducerEntry]) -> None:
    found = decode_snapshot("f", encode_snapshot(state))
    assert found == state and list(found) == list(state)


def test_a_reader_that_takes_the_last_entry_of_a_producer_finds_its_newest_batch() -> None:
    """Kafka does: it puts one row after the other into a map."""
    five = tuple(Remembered(n, 10 + n, 0, n) for n in range(5))
    content = encode_snapshot({7: ProducerEntry(0, five, 4)})
    rows = [content[10 + 46 * n : 56 + 46 * n] for n in range(5)]
    assert rows[-1] == encode_snapshot({7: ProducerEntry(0, five[-1:], 4)})[10:]


DAMAGE = [
    ("empty", b""),
    ("cut in the head", GOLDEN[:9]),
    ("cut in an entry", GOLDEN[:-1]),
    ("a byte more", GOLDEN + b"\0"),
    ("another version", b"\x00\x02" + GOLDEN[2:]),
    ("zeroes", bytes(56)),
    ("a count that is too large", b"\x00\x01" + crc32c(b"\x7f\xff\xff\xff").to_bytes(4, "big") + b"\x7f\xff\xff\xff"),
    ("a negative count", b"\x00\x01" + crc32c(b"\xff\xff\xff\xff").to_bytes(4, "big") + b"\xff\xff\xff\xff"),
]


@pytest.mark.parametrize("content", [c[1] for c in DAMAGE], ids=[c[0] for c in DAMAGE])
def test_damage_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptSnapshot, match="f: "):
        decode_snapshot("f", content)


@rule("log 6.6")
@given(st.integers(0, len(GOLDEN) * 8 - 1))
def test_no_flipped_bit_passes(bit: int) -> None:
    damaged = bytearray(GOLDEN)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptSnapshot):
        decode_snapshot("f", bytes(damaged))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_snapshot_or_refused(content: bytes) -> None:
    try:
        decode_snapshot("f", content)
    except CorruptSnapshot:
        pass
