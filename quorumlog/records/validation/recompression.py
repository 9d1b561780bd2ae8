"""A batch stored under another codec than its producer chose, because the topic names one (`compression.type`).

Works in slices of some milliseconds, and holds neither the decompressed nor the old batch as a whole in memory beside
what it was given. The records themselves stay as they are, byte for byte; the header gets another codec, length and
checksum. Levels: KIP-390.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

from quorumlog.records.format.batch import BATCH_OVERHEAD, BatchHeader, Codec, with_payload
from quorumlog.records.format.buffers import Buffer
from quorumlog.records.format.compression import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    GZIP_WINDOW,
    compress,
    decompressed_pieces,
)
from quorumlog.slices import Sliced

SLICE_BYTES = 64 * 1024  # compressed between two steps
LZ4_FAST = 9  # Kafka's default level, which stands for the fast compressor


class _Encoder(Protocol):
    def compress(self, data: Buffer) -> bytes: ...
    def flush(self) -> bytes: ...


class _Gzip:
    def __init__(self, level: int) -> None:
        squeeze = zlib.compressobj(level, wbits=GZIP_WINDOW)
        self.compress, self.flush = squeeze.compress, squeeze.flush


class _Lz4:
    def __init__(self, level: int) -> None:
        import lz4.frame

        level = 0 if level == LZ4_FAST else level
        self._frame = lz4.frame.LZ4FrameCompressor(block_linked=False, compression_level=level)
        self._is_begun = False

    def compress(self, data: Buffer) -> bytes:
        return self._begin() + bytes(self._frame.compress(data))

    def flush(self) -> bytes:
        return self._begin() + bytes(self._frame.flush())

    def _begin(self) -> bytes:
        begun, self._is_begun = self._is_begun, True
        return b"" if begun else bytes(self._frame.begin())


class _Zstd:
    def __init__(self, level: int) -> None:
        import zstandard

        squeeze = zstandard.ZstdCompressor(level=level).compressobj()
        self.compress, self.flush = squeeze.compress, squeeze.flush


class _Whole:
    """For what is stored as it is, and for snappy, whose blocks are made from the whole; it is the fastest codec."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._data = bytearray()

    def compress(self, data: Buffer) -> bytes:
        self._data += data
        return b""

    def flush(self) -> bytes:
        return bytes(compress(self._codec, self._data))


_ENCODERS: dict[Codec, Callable[[int], _Encoder]] = {
    Codec.NONE: lambda _: _Whole(Codec.NONE),
    Codec.GZIP: _Gzip,
    Codec.SNAPPY: lambda _: _Whole(Codec.SNAPPY),
    Codec.LZ4: _Lz4,
    Codec.ZSTD: _Zstd,
}


def recompressed(
    buf: Buffer,
    header: BatchHeader,
    codec: Codec,
    level: int,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Sliced[bytes]:
    """The batch of `header` in `buf`, compressed anew. Yields after each slice; returns the batch.

    level: of the codec; ignored by none and snappy. Raises BadCompression, before more than the limit is expanded.
    """
    encoder, parts = _ENCODERS[codec](level), []
    stored = memoryview(buf)[header.position + BATCH_OVERHEAD : header.end]
    for piece in decompressed_pieces(header.codec, stored, max_decompressed_bytes):
        view = memoryview(piece)
        for begin in range(0, len(view), SLICE_BYTES):
            parts.append(encoder.compress(view[begin : begin + SLICE_BYTES]))
            yield
    parts.append(encoder.flush())
    return with_payload(header, codec, b"".join(parts))
