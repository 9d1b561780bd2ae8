"""Codecs: the formats of Kafka's clients, and the limits on decompressed size."""

from __future__ import annotations

import gzip
import zlib
from struct import pack

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.records import Codec, CorruptRecords, Record, decode_batch, encode_batch, headers
from quorumlog.records.format.batch import seal
from quorumlog.records.format.compression import BadCompression, compress, decompress
from tests.parts import few
from tests.rules import rule

PACKED = [codec for codec in Codec if codec != Codec.NONE]


@rule("storage 10.5")
@given(st.sampled_from(Codec), st.one_of(st.binary(max_size=300), st.integers(0, 200_000).map(bytes)))
def test_round_trip(codec: Codec, data: bytes) -> None:
    packed = compress(codec, memoryview(bytearray(data)))
    assert bytes(decompress(codec, packed)) == data
    assert bytes(decompress(codec, memoryview(bytes(packed)), len(data))) == data


@pytest.mark.parametrize("codec", list(Codec))
def test_the_limit_is_inclusive(codec: Codec) -> None:
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, 100_000)) == 100_000
    with pytest.raises(BadCompression, match="limit of 99999"):
        decompress(codec, packed, 99_999)


def bomb(codec: Codec, size: int) -> bytes:
    """Little data that decompresses to `size` zeroes, created without holding them."""
    block = bytes(1 << 20)
    if codec == Codec.GZIP:
        squeeze = zlib.compressobj(wbits=31)
        return b"".join(squeeze.compress(block) for _ in range(size >> 20)) + squeeze.flush()
    if codec == Codec.LZ4:
        with lz4.frame.LZ4FrameCompressor() as frame:
            return bytes(frame.begin() + b"".join(frame.compress(block) for _ in range(size >> 20)) + frame.flush())
    if codec == Codec.ZSTD:
        stream = zstandard.ZstdCompressor().compressobj()
        return b"".join(stream.compress(block) for _ in range(size >> 20)) + stream.flush()
    framed = bytes(cramjam.snappy.compress_raw(block))
    return b"\x82SNAPPY\x00" + pack(">ii", 1, 1) + (pack(">i", len(framed)) + framed) * (size >> 20)


@rule("storage 10.5")
@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_is_refused_before_it_is_held(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    packed = bomb(codec, 256 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(BadCompression, match="limit"):
            decompress(codec, packed, 4 << 20)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20


def test_a_snappy_block_with_a_false_size_is_not_allocated() -> None:
    """CVE-2023-34455."""
    claims_4_gib = b"\xff\xff\xff\xff\x0f" + b"\x00"
    for data in (claims_4_gib, b"\x82SNAPPY\x00" + pack(">iii", 1, 1, len(claims_4_gib)) + claims_4_gib):
        with pytest.raises(BadCompression, match="limit"):
            decompress(Codec.SNAPPY, data)


def test_a_bomb_in_a_batch_is_a_corrupt_batch() -> None:
    data = encode_batch([Record(0, 0, None, bytes(1 << 20))], codec=Codec.ZSTD)
    with pytest.raises(CorruptRecords, match="limit"):
        decode_batch(data, headers(data)[0], max_decompressed_bytes=1 << 19)


def test_xerial_framing() -> None:
    framed = bytes(compress(Codec.SNAPPY, bytes(40_000)))
    assert framed[:16] == b"\x82SNAPPY\x00" + pack(">ii", 1, 1)
    first = int.from_bytes(framed[16:20], "big")
    assert len(cramjam.snappy.decompress_raw(framed[20 : 20 + first])) == 32 * 1024


def test_forms_of_other_clients() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"bare"))) == b"bare"  # librdkafka
    assert decompress(Codec.GZIP, gzip.compress(b"two ") + gzip.compress(b"members")) == b"two members"
    assert decompress(Codec.LZ4, lz4.frame.compress(b"x" * 99, store_size=True, content_checksum=True)) == b"x" * 99
    assert decompress(Codec.ZSTD, zstandard.ZstdCompressor(write_content_size=False).compress(b"y" * 99)) == b"y" * 99


def test_java_reads_lz4_of_independent_blocks_only() -> None:
    assert lz4.frame.get_frame_info(compress(Codec.LZ4, bytes(200_000)))["block_linked"] is False


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_truncated_data(codec: Codec) -> None:
    packed = bytes(compress(codec, bytes(range(256)) * 10))
    for cut in range(1, len(packed)):
        if codec == Codec.SNAPPY and cut == 16:
            continue  # the frame's header alone is an empty stream
        with pytest.raises(BadCompression):
            decompress(codec, packed[:cut])


def test_a_truncated_zstd_frame_is_a_corrupt_batch() -> None:
    data = encode_batch([Record(0, 0, None, bytes(range(256)))], codec=Codec.ZSTD)
    header = headers(data)[0]
    fields = {name: getattr(header, name) for name in (
        "base_offset", "leader_epoch", "attributes", "last_offset_delta", "base_timestamp", "max_timestamp",
        "producer_id", "producer_epoch", "base_sequence", "count")}  # fmt: skip
    for cut in range(61, len(data)):
        shorter = seal(data[61:cut], **fields)
        with pytest.raises(CorruptRecords):
            decode_batch(shorter, headers(shorter)[0])


@settings(max_examples=few(300))
@given(st.integers(-1, 9), st.binary(max_size=60))
def test_any_bytes_decompress_or_give_a_typed_error(codec: int, data: bytes) -> None:
    for prefix in (b"", b"\x82SNAPPY\x00" + bytes(8), b"\x1f\x8b\x08", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd"):
        try:
            assert len(decompress(codec, prefix + data, 1 << 16)) <= 1 << 16
        except BadCompression as error:
            assert str(error)
