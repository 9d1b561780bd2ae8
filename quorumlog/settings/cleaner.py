"""Settings of the cleaner: names and defaults are Kafka's."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.config_key import MAX_LONG
from quorumlog.settings.key import NodeKey, flag, number, parse_float, setting, size

DEDUPE_BUFFER_MAX_BYTES = 2 << 30  # of one thread, as in Kafka


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerConfig:
    """dedupe_buffer_bytes, io_buffer_bytes, bytes_per_s: of all rounds together."""

    enable: bool = setting(flag("log.cleaner.enable", True, "Compact logs of `cleanup.policy=compact`."))
    threads: int = setting(
        number("log.cleaner.threads", 1, 0, "Logs that are compacted at the same time, each by a process of its own.")
    )
    dedupe_buffer_bytes: int = setting(
        size(
            "log.cleaner.dedupe.buffer.size",
            128 << 20,
            1 << 20,
            "Memory for the keys of all logs that are compacted now: 24 bytes a key.",
            MAX_LONG,
        )
    )
    io_buffer_bytes: int = setting(
        size("log.cleaner.io.buffer.size", 512 << 10, 0, "Memory for reading and writing, of all compactions together.")
    )
    load_factor: float = setting(
        NodeKey(
            name="log.cleaner.io.buffer.load.factor",
            parse=parse_float,
            default="0.9",
            minimum=0.01,
            maximum=1.0,
            doc="How full the memory for keys may become.",
        )
    )
    bytes_per_s: float = setting(
        NodeKey(
            name="log.cleaner.io.max.bytes.per.second",
            parse=parse_float,
            default="1.7976931348623157E308",
            minimum=1.0,
            doc="Most bytes that all compactions read and write in a second.",
        )
    )
    backoff_ms: int = setting(number("log.cleaner.backoff.ms", 15_000, 0, "Pause when no log is due to be compacted."))
    paused_until_ms: int = setting(
        number(
            "log.cleaner.paused.until.ms",
            0,
            0,
            "Nothing is compacted before this time, in ms since 1970; a backup sets it while it copies.",
            MAX_LONG,
        )
    )

    @property
    def map_bytes(self) -> int:
        """Of one round."""
        return min(self.dedupe_buffer_bytes // max(1, self.threads), DEDUPE_BUFFER_MAX_BYTES)
