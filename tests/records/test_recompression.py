"""Batches stored under another codec: the same records, whatever the two codecs are."""

from __future__ import annotations

import gzip
import struct
import time

import lz4.frame
import pytest
import zstandard

from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.records.format.batch import Codec, verify_crc
from quorumlog.records.format.compression import BadCompression, compress, decompress, decompressed_pieces
from quorumlog.records.validation.recompression import recompressed

RECORDS = [Record(n, 1_700_000_000_000 + n, b"k%d" % n, b"value " * 40, (("h", b"x"),)) for n in range(500)]
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def converted(batch: bytes, codec: Codec, level: int = 3) -> tuple[bytes, int]:
    """(the batch, steps taken)."""
    steps = recompressed(batch, headers(batch)[0], codec, level)
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.parametrize("after", list(Codec))
@pytest.mark.parametrize("before", list(Codec))
def test_the_records_stay_the_same(before: Codec, after: Codec) -> None:
    batch = encode_batch(RECORDS, codec=before)
    stored, _ = converted(batch, after)
    (header,) = headers(stored)
    verify_crc(stored, header)
    (sent,) = headers(batch)
    assert header.codec == after and header.size == len(stored)
    assert (header.count, header.max_timestamp, header.producer_id) == (
        sent.count,
        sent.max_timestamp,
        sent.producer_id,
    )
    assert decode_batch(stored, header) == decode_batch(batch, sent)


def test_a_level_is_used() -> None:
    batch = encode_batch(RECORDS)
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 9, 12), (Codec.ZSTD, -50, 19)):
        assert len(converted(batch, codec, high)[0]) < len(converted(batch, codec, low)[0]), codec


def test_a_large_batch_is_compressed_in_steps() -> None:
    batch = encode_batch([Record(n, 0, None, bytes(100_000), ()) for n in range(10)])
    _, steps = converted(batch, Codec.GZIP)
    assert steps >= 10


def test_what_expands_beyond_the_limit_is_refused_before_it_is_compressed() -> None:
    batch = encode_batch([Record(0, 0, None, bytes(5_000_000), ())], codec=Codec.GZIP)
    steps = recompressed(batch, headers(batch)[0], Codec.ZSTD, 3, 3_000_000)
    with pytest.raises(BadCompression, match="limit of 3000000"):
        list(steps)


SHORT_STREAMS = {
    "gzip members": lambda size: (Codec.GZIP, _filled(gzip.compress(b""), size)),
    "gzip members with a byte each": lambda size: (Codec.GZIP, _filled(gzip.compress(b"a"), size)),
    "snappy blocks": lambda size: (Codec.SNAPPY, XERIAL + _filled(struct.pack(">i", 1) + b"\x00", size)),
    "zstd frames": lambda size: (Codec.ZSTD, _filled(zstandard.compress(b""), size)),
    "lz4 blocks": lambda size: (
        Codec.LZ4,
        _lz4_header() + _filled(struct.pack("<I", 0x80000001) + b"a", size) + bytes(4),
    ),
}


def _filled(piece: bytes, size: int) -> bytes:
    return piece * (size // len(piece))


def _lz4_header() -> bytes:
    return bytes(lz4.frame.compress(b"", block_linked=False))[:7]


def _processor_s(codec: Codec, data: bytes) -> float:
    begun = time.process_time()
    for _ in decompressed_pieces(codec, data):
        pass
    return time.process_time() - begun


@pytest.mark.parametrize("name", SHORT_STREAMS)
def test_the_work_grows_with_the_input_and_not_with_its_square(name: str) -> None:
    """Sixteen times the input: sixteen times the work, and not 256 times."""
    small, large = (SHORT_STREAMS[name](size) for size in (64 << 10, 1 << 20))
    ratio = min(_processor_s(*large) for _ in range(3)) / max(min(_processor_s(*small) for _ in range(5)), 1e-4)
    assert ratio < 80, f"{ratio:.0f} times"


def test_many_members_are_one_content() -> None:
    data = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two" * 100_000) + gzip.compress(b"!")
    assert bytes(decompress(Codec.GZIP, data)) == b"one" + b"two" * 100_000 + b"!"
    with pytest.raises(BadCompression, match="truncated"):
        decompress(Codec.GZIP, data[:-4])
    with pytest.raises(BadCompression, match="gzip"):
        decompress(Codec.GZIP, data + b"rest")


def test_a_snappy_block_that_states_too_much_is_refused_before_the_memory_is_taken() -> None:
    lie = b"\x80\x80\x80\x20" + bytes(40)  # 64 MiB
    with pytest.raises(BadCompression, match="cannot hold 67108864"):
        decompress(Codec.SNAPPY, lie)


@pytest.mark.parametrize("data", [bytes(1 << 20), b"ab" * 500_000, b"abcdefgh" * 100_000])
def test_no_snappy_block_of_ours_is_taken_for_a_lie(data: bytes) -> None:
    assert bytes(decompress(Codec.SNAPPY, compress(Codec.SNAPPY, data))) == data
    import cramjam

    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)))) == data
