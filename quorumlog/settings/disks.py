"""What a node does with its disks: how long it waits for them, and what it keeps open of their logs."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.key import number, number_or_not, setting, size

RECOVERY_THREADS = "num.recovery.threads.per.data.dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskConfig:
    stall_ms: int = setting(
        number(
            "log.dir.stall.ms",
            3_000,
            100,
            "A directory where a write or a sync takes longer than this is taken offline. Not in Kafka.",
        )
    )
    recovery_threads: int = setting(
        number(
            RECOVERY_THREADS,
            2,
            1,
            "Logs that are opened or closed at the same time in each of `log.dirs`, and other jobs beside its writer.",
            maximum=64,
        )
    )
    open_files_max: int | None = setting(
        number_or_not(
            "log.open.files.max",
            8,
            "Segment files that stay open; by default what ulimit -n leaves, at most 1,000. Not in Kafka.",
        )
    )
    index_bytes_max: int = setting(
        size("log.index.bytes.max", 128 << 20, 1 << 10, "Most bytes of loaded indexes. Not in Kafka.")
    )
