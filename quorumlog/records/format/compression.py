"""Compression of a batch's records, in the formats that Kafka's clients write.

gzip; snappy in xerial framing (Java clients) or as one raw block (librdkafka); an lz4 frame; zstd. The codecs are
libraries, imported on first use; framing and limits are ours. Every decompressor works in pieces and stops *before*
it has produced more than `max_bytes`, so that a hundred bytes from a client cannot become a gigabyte here.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import TYPE_CHECKING

from quorumlog.records.format.batch import Codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorumlog.records.format.buffers import Buffer

DEFAULT_MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024

GZIP_WINDOW = 31  # zlib's window bits for a gzip header and a window of 32 KiB
_STEP_BYTES = 1024 * 1024  # largest output of one call to a streaming decompressor
_FIRST_CHUNK_BYTES, _CHUNK_BYTES = 256, 64 * 1024  # input of one call: of the first one of a stream, of a later one
_SNAPPY_RATIO = 22  # more than any snappy block expands: its best element writes 64 bytes for 3
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + Struct(">ii").pack(1, 1)  # version, oldest compatible version
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = Struct(">i")


class BadCompression(ValueError):
    """Bytes that cannot be decompressed, or would exceed the limit. The message gives the reason."""


def compress(codec: int, data: Buffer) -> Buffer:
    """`data` as a batch of this codec stores it. Raises KeyError if `codec` is not a Codec."""
    return _COMPRESS[Codec(codec)](data)


def decompress(codec: int, data: Buffer, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> Buffer:
    """The inverse of `compress`; returns `data` itself if the codec is NONE. Raises only BadCompression."""
    pieces = list(decompressed_pieces(codec, data, max_bytes))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decompressed_pieces(codec: int, data: Buffer, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> Iterator[Buffer]:
    """The decompressed bytes in order, in pieces of at most _STEP_BYTES; `data` itself if the codec is NONE.

    One exception: snappy's format is decompressed by whole blocks, whatever their size. Raises only BadCompression.
    """
    if codec not in _DECOMPRESS:
        raise BadCompression(f"compression type {codec} is unknown")
    return _DECOMPRESS[Codec(codec)](data, _Room(max_bytes))


class _Room:
    """How many decompressed bytes are still allowed."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._left = max_bytes

    def next_bytes(self) -> int:
        """Most bytes to request next: one more than the limit allows, so that an excess is detected. Never 0."""
        return min(_STEP_BYTES, self._left + 1)

    def admit(self, size: int) -> None:
        """Raises BadCompression unless `size` more bytes are allowed. For codecs that state the size in advance."""
        if size > self._left:
            raise BadCompression(f"decompresses to more than the limit of {self._max_bytes} bytes")

    def take(self, piece: bytes) -> bytes:
        """`piece`, which is now part of what is used. Raises BadCompression if it exceeds the limit."""
        self.admit(len(piece))
        self._left -= len(piece)
        return piece


def _store(data: Buffer) -> Buffer:
    return data


def _stored(data: Buffer, room: _Room) -> Iterator[Buffer]:
    room.admit(len(data))
    yield data


def _gzip(data: Buffer) -> bytes:
    squeeze = zlib.compressobj(wbits=GZIP_WINDOW)
    return squeeze.compress(data) + squeeze.flush()


class _Input:
    """Compressed bytes, given out in chunks. What a decoder does not take is copied by it, so chunks are small.

    They grow within one stream. So the many short streams of a hostile input cost no more than their own bytes, and a
    long one is not cut up: the whole work is linear in the input.
    """

    def __init__(self, data: Buffer) -> None:
        self._view, self._at, self._size = memoryview(data), 0, _FIRST_CHUNK_BYTES

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._view)

    def take(self) -> memoryview:
        """The next chunk; empty at the end."""
        chunk = self._view[self._at : self._at + self._size]
        self._at += len(chunk)
        self._size = min(2 * self._size, _CHUNK_BYTES)
        return chunk

    def stream_ended(self, unused: bytes) -> None:
        """unused: what the decoder was given behind the end of its stream."""
        self._at -= len(unused)
        self._size = _FIRST_CHUNK_BYTES


def _gunzip(data: Buffer, room: _Room) -> Iterator[Buffer]:
    source = _Input(data)
    while True:  # one round per gzip member: some writers append members
        member = zlib.decompressobj(wbits=GZIP_WINDOW)
        rest: Buffer = b""
        while not member.eof:
            rest = rest or source.take()
            if not rest:
                raise BadCompression("gzip: the data is truncated")
            try:
                piece = member.decompress(rest, room.next_bytes())
            except zlib.error as error:
                raise BadCompression(f"gzip: {error}") from error
            yield room.take(piece)
            rest = member.unconsumed_tail
        source.stream_ended(member.unused_data)
        if source.is_over:
            return


def _snappy(data: Buffer) -> bytes:
    from cramjam import snappy

    out = bytearray(_XERIAL_HEADER)
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += _BLOCK_LENGTH.pack(len(block))
        out += block
    return bytes(out)


def _unsnappy(data: Buffer, room: _Room) -> Iterator[Buffer]:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        yield _unsnappy_block(view, room)
        return
    position = len(_XERIAL_HEADER)
    if position > len(view):
        raise BadCompression("snappy: the data is truncated")
    while position < len(view):
        if len(view) - position < _BLOCK_LENGTH.size:
            raise BadCompression("snappy: the data is truncated")
        (length,) = _BLOCK_LENGTH.unpack_from(view, position)
        position += _BLOCK_LENGTH.size
        if not 0 < length <= len(view) - position:
            raise BadCompression(f"snappy: a block of {length} bytes, {len(view) - position} are left")
        yield _unsnappy_block(view[position : position + length], room)
        position += length


def _unsnappy_block(block: memoryview, room: _Room) -> bytes:
    """One raw block, decompressed. It states its size first; the limit is checked before that much is allocated."""
    import cramjam

    try:
        stated = cramjam.snappy.decompress_raw_len(block)
        room.admit(stated)
        if stated > _SNAPPY_RATIO * len(block):  # before so much memory is taken for it
            raise BadCompression(f"snappy: a block of {len(block)} bytes cannot hold {stated}")
        return room.take(bytes(cramjam.snappy.decompress_raw(block)))
    except cramjam.DecompressionError as error:
        raise BadCompression(f"snappy: {error}") from error


def _lz4(data: Buffer) -> bytes:
    import lz4.frame

    return bytes(lz4.frame.compress(data, block_linked=False, store_size=False))


def _unlz4(data: Buffer, room: _Room) -> Iterator[Buffer]:
    import lz4.frame

    frame, source = lz4.frame.LZ4FrameDecompressor(), _Input(data)
    while not frame.eof:
        chunk: Buffer = source.take() if frame.needs_input else b""
        if frame.needs_input and not chunk:
            raise BadCompression("lz4: the data is truncated")
        try:
            piece = frame.decompress(chunk, max_length=room.next_bytes())
        except RuntimeError as error:
            raise BadCompression(f"lz4: {error}") from error
        yield room.take(piece)
    if frame.unused_data or not source.is_over:
        raise BadCompression("lz4: bytes after the frame")


def _zstd(data: Buffer) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def _unzstd(data: Buffer, room: _Room) -> Iterator[Buffer]:
    import zstandard

    try:  # a truncated frame gives no error here; the record reader then finds too few records
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(room.next_bytes()):
                yield room.take(piece)
    except zstandard.ZstdError as error:
        raise BadCompression(f"zstd: {error}") from error


_COMPRESS: dict[Codec, Callable[[Buffer], Buffer]] = {
    Codec.NONE: _store,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESS: dict[int, Callable[[Buffer, _Room], Iterator[Buffer]]] = {
    Codec.NONE: _stored,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
