"""Compression of a batch's records, in the formats that Kafka's clients write.

gzip; snappy in xerial framing (Java clients) or as one raw block (librdkafka); an lz4 frame; zstd. The codecs are
libraries, imported on first use; framing and limits are ours. Every decompressor stops *before* it holds more than
`max_bytes`, so that a hundred bytes from a client cannot become a gigabyte here.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import TYPE_CHECKING

from quorumlog.records.batch import Codec

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorumlog.records.buffers import Buffer

DEFAULT_MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024

_GZIP_WINDOW = 31  # zlib's window bits for a gzip header and a window of 32 KiB
_STEP_BYTES = 1024 * 1024  # largest output of one call to a streaming decompressor
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
    if codec not in _DECOMPRESS:
        raise BadCompression(f"compression type {codec} is unknown")
    return _DECOMPRESS[Codec(codec)](data, max_bytes)


class _Pieces:
    """The decompressed pieces so far. Refuses a piece that exceeds the limit."""

    def __init__(self, max_bytes: int) -> None:
        self._pieces: list[bytes] = []
        self._max_bytes = max_bytes
        self._left = max_bytes

    def room(self) -> int:
        """Most bytes to request next: one more than the limit allows, so that an excess is detected. Never 0."""
        return min(_STEP_BYTES, self._left + 1)

    def admit(self, size: int) -> None:
        """Raises BadCompression unless `size` more bytes are allowed. For codecs that state the size in advance."""
        if size > self._left:
            raise BadCompression(f"decompresses to more than the limit of {self._max_bytes} bytes")

    def add(self, piece: bytes) -> None:
        self.admit(len(piece))
        self._left -= len(piece)
        self._pieces.append(piece)

    def join(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


def _store(data: Buffer) -> Buffer:
    return data


def _stored(data: Buffer, max_bytes: int) -> Buffer:
    _Pieces(max_bytes).admit(len(data))
    return data


def _gzip(data: Buffer) -> bytes:
    squeeze = zlib.compressobj(wbits=_GZIP_WINDOW)
    return squeeze.compress(data) + squeeze.flush()


def _gunzip(data: Buffer, max_bytes: int) -> bytes:
    pieces = _Pieces(max_bytes)
    rest: Buffer = data
    while True:  # one round per gzip member: some writers append members
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        while not member.eof:
            try:
                piece = member.decompress(rest, pieces.room())
            except zlib.error as error:
                raise BadCompression(f"gzip: {error}") from error
            pieces.add(piece)
            rest = member.unconsumed_tail
            if not piece and not rest and not member.eof:
                raise BadCompression("gzip: the data is truncated")
        rest = member.unused_data
        if not rest:
            return pieces.join()


def _snappy(data: Buffer) -> bytes:
    from cramjam import snappy

    out = bytearray(_XERIAL_HEADER)
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += _BLOCK_LENGTH.pack(len(block))
        out += block
    return bytes(out)


def _unsnappy(data: Buffer, max_bytes: int) -> bytes:
    pieces = _Pieces(max_bytes)
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        _unsnappy_block(view, pieces)
        return pieces.join()
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
        _unsnappy_block(view[position : position + length], pieces)
        position += length
    return pieces.join()


def _unsnappy_block(block: memoryview, pieces: _Pieces) -> None:
    """Decompress one raw block. It states its size first; the limit is checked before that much is allocated."""
    import cramjam

    try:
        pieces.admit(cramjam.snappy.decompress_raw_len(block))
        piece = bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise BadCompression(f"snappy: {error}") from error
    pieces.add(piece)


def _lz4(data: Buffer) -> bytes:
    import lz4.frame

    return bytes(lz4.frame.compress(data, block_linked=False, store_size=False))


def _unlz4(data: Buffer, max_bytes: int) -> bytes:
    import lz4.frame

    pieces = _Pieces(max_bytes)
    frame = lz4.frame.LZ4FrameDecompressor()
    rest: Buffer = data
    while not frame.eof:
        try:
            piece = frame.decompress(rest, max_length=pieces.room())
        except RuntimeError as error:
            raise BadCompression(f"lz4: {error}") from error
        if not piece and frame.needs_input and not frame.eof:
            raise BadCompression("lz4: the data is truncated")
        pieces.add(piece)
        rest = b""
    if frame.unused_data:
        raise BadCompression("lz4: bytes after the frame")
    return pieces.join()


def _zstd(data: Buffer) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def _unzstd(data: Buffer, max_bytes: int) -> bytes:
    import zstandard

    pieces = _Pieces(max_bytes)
    try:  # a truncated frame gives no error here; the record reader then finds too few records
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(pieces.room()):
                pieces.add(piece)
    except zstandard.ZstdError as error:
        raise BadCompression(f"zstd: {error}") from error
    return pieces.join()


_COMPRESS: dict[Codec, Callable[[Buffer], Buffer]] = {
    Codec.NONE: _store,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESS: dict[int, Callable[[Buffer, int], Buffer]] = {
    Codec.NONE: _stored,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
