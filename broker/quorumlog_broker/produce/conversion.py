"""A produced batch as it is stored: with its true largest timestamp, and in the codec that its topic asks for.

A header's largest timestamp is set by what the records have, as Kafka's `LogValidator` does: clients leave it at -1
(sarama before 1.45.1), and searches by time, retention and rolls go by it.

`compression.type=producer`, the default, stores every batch as it was sent, and so does a topic that names the codec
that the producer used, whatever its level. Only another codec is decompressed and compressed anew (Kafka's
`LogValidator`). That is done in slices, in the line of the large batches (record_checks.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.configs.topic import TopicConfig
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.buffer import Buffer
from quorumlog.records.format.batch import BatchHeader, Codec, headers, with_largest_timestamp
from quorumlog.records.format.compression import BadCompression
from quorumlog.records.validation.recompression import recompressed
from quorumlog.slices import Sliced
from quorumlog_broker.produce.produce_rules import check_size

AS_SENT = "producer"
CODECS: Mapping[str, Codec] = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class Conversion:
    """records, found: the batch and its header: as sent until `looked_at` and `steps` have ended, then as stored."""

    def __init__(self, records: Buffer, found: list[BatchHeader], config: TopicConfig) -> None:
        self.records, self.found = records, found
        self._config = config

    def looked_at(self, check: Sliced[int]) -> Sliced[None]:
        """The steps of `check_records`, and then the correction by what it returns."""
        self.correct((yield from check))

    def correct(self, largest_ms: int) -> None:
        """largest_ms: timestamp of the records, -1 where none has one."""
        header = self.found[0]
        if header.max_timestamp != largest_ms or header.is_log_append_time:
            self.records = with_largest_timestamp(self.records, header, largest_ms)
            self.found = headers(self.records)

    @property
    def is_needed(self) -> bool:
        codec = self._config.compression_type
        return codec != AS_SENT and CODECS[codec] != self.found[0].codec

    def steps(self) -> Sliced[None]:
        """Raises ApiError: INVALID_RECORD; MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE if the batch has become too large
        for the topic."""
        config = self._config
        codec = CODECS[config.compression_type]
        levels = {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }
        try:
            stored = yield from recompressed(self.records, self.found[0], codec, levels.get(codec, 0))
        except BadCompression as error:
            raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
        if len(stored) > config.max_message_bytes:
            text = f"the batch has {len(stored)} bytes as compression.type={config.compression_type} stores it"
            limit = f"max.message.bytes is {config.max_message_bytes}"
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, f"{text}; {limit}: send less at once, or with that codec")
        found = headers(stored)
        check_size(config, found)
        self.records, self.found = stored, found
