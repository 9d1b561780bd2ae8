"""What a series is: its name, what an operator asks by it, and how Kafka calls the same."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PREFIX = "quorumlog_"


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Rest(StrEnum):
    """How values with labels beyond the bound become one."""

    SUM = "sum"
    LARGEST = "max"
    LEAST = "min"


@dataclass(frozen=True, slots=True)
class Series:
    """name: without the prefix. unit: of its values; empty: a number of things. labels: their names, in order.
    asks: what an operator asks. mbean: what tells the same of Kafka 4.3.1, and its attribute; empty: nothing there.
    rest: of the values beyond the bound of a label. buckets: of a histogram, a name of `quorumlog.histogram.BUCKETS`.
    prefix: empty for names that every process has.
    """

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    asks: str
    mbean: str = ""
    rest: Rest = Rest.SUM
    buckets: str = ""
    prefix: str = PREFIX

    @property
    def full_name(self) -> str:
        return self.prefix + self.name
