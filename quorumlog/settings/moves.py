"""The settings of moves between log directories."""

from __future__ import annotations

from dataclasses import dataclass

UNLIMITED_BYTES_PER_S = float(2**63 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesConfig:
    """bytes_per_s: `replica.alter.log.dirs.io.max.bytes.per.second`, of all moves of this broker together.

    threads: `num.replica.alter.log.dirs.threads`, moves that copy at the same time; 0: one for each log directory.
    """

    bytes_per_s: float = UNLIMITED_BYTES_PER_S
    threads: int = 0
