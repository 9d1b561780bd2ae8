"""Settings of the cleaner: names and defaults are Kafka's."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog_storage.cleaning.batches import IO_BUFFER_BYTES_DEFAULT
from quorumlog_storage.cleaning.offset_map import LOAD_FACTOR_DEFAULT
from quorumlog_storage.cleaning.spec import DEDUPE_BUFFER_BYTES_DEFAULT, DEDUPE_BUFFER_MAX_BYTES, UNLIMITED_BYTES_PER_S

BACKOFF_MS_DEFAULT = 15_000  # log.cleaner.backoff.ms


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerConfig:
    enable: bool = True  # log.cleaner.enable
    threads: int = 1  # log.cleaner.threads: rounds at the same time; 0: none
    dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES_DEFAULT  # of all rounds together
    io_buffer_bytes: int = IO_BUFFER_BYTES_DEFAULT  # of all rounds together
    load_factor: float = LOAD_FACTOR_DEFAULT
    bytes_per_s: float = UNLIMITED_BYTES_PER_S  # of all rounds together
    backoff_ms: int = BACKOFF_MS_DEFAULT

    @property
    def map_bytes(self) -> int:
        """Of one round."""
        return min(self.dedupe_buffer_bytes // max(1, self.threads), DEDUPE_BUFFER_MAX_BYTES)
