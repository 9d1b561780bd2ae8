"""The settings of moves between log directories."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.config_key import MAX_LONG
from quorumlog.settings.key import number, number_or_not, setting

UNLIMITED_BYTES_PER_S = MAX_LONG


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesConfig:
    """bytes_per_s: of all moves of this broker together. threads: moves that copy at the same time."""

    bytes_per_s: float = setting(
        number(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            UNLIMITED_BYTES_PER_S,
            1,
            "Most bytes that moves between log directories copy in a second, all together.",
            MAX_LONG,
        )
    )
    threads: int | None = setting(
        number_or_not(
            "num.replica.alter.log.dirs.threads",
            1,
            "Moves between log directories that copy at the same time. Default: one for each directory.",
        )
    )
