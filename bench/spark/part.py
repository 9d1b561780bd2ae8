"""What a part of the Spark bench is given, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.measuring.report import Row
from bench.spark.tools import NEWEST, SparkTools


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """tools: of each version. folder: of the run. rounds, records: what the command line says; None: the part's own
    number, `quick` or not."""

    tools: Sequence[SparkTools]
    folder: Path
    rounds: int | None = None
    records: int | None = None
    quick: bool = False

    @property
    def newest(self) -> SparkTools | None:
        """Writes are measured with it only. None: it is not asked for."""
        return next((one for one in self.tools if one.version == NEWEST), None)

    def round_count(self, whole: int, quick: int) -> int:
        return self.rounds or (quick if self.quick else whole)

    def record_count(self, whole: int, quick: int) -> int:
        return self.records or (quick if self.quick else whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """name: of the samples, and of missed goals. settings: of the report."""

    name: str
    heading: str
    rows: Sequence[Row]
    samples: Any
    settings: Mapping[str, Any] = field(default_factory=dict)


Part = Callable[[Setting], Iterator[Found]]


def rotated(names: Sequence[str], by: int) -> list[str]:
    """Each kind of session is the first one of a round as often as any other: what comes first is the slowest."""
    start = by % len(names)
    return [*names[start:], *names[:start]]
