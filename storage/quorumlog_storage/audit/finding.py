"""What an audit finds: a fault, or a note on something that a start repairs or that does no harm."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from quorumlog.ids import Offset

MAX_KEPT = 1_000  # of each weight; the others are only counted


class Weight(StrEnum):
    """FAULT: something is wrong. NOTE: worth telling; the next start repairs it, or it does no harm."""

    FAULT = "fault"
    NOTE = "note"


class Finding(NamedTuple):
    """check: name of the rule, such as `batch-checksum`. position: bytes from the start of the file; None: the file.

    offset: of the record concerned; None where there is none.
    """

    weight: Weight
    check: str
    path: str
    position: int | None
    offset: Offset | None
    expected: str
    found: str

    def __str__(self) -> str:
        place = self.path
        if self.position is not None:
            place += f" at byte {self.position}"
        if self.offset is not None:
            place += f" (offset {self.offset})"
        if self.weight is Weight.NOTE and not self.expected:
            return f"{self.check}: {place}: {self.found}"
        return f"{self.check}: {place}: expected {self.expected}, found {self.found}"


class Findings:
    """All of one audit. At most MAX_KEPT of each weight are kept."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Weight, 0)
        self._kept: list[Finding] = []

    def add(
        self,
        check: str,
        path: str,
        *,
        expected: str,
        found: str,
        position: int | None = None,
        offset: Offset | None = None,
        weight: Weight = Weight.FAULT,
    ) -> None:
        self.counts[weight] += 1
        if self.counts[weight] <= MAX_KEPT:
            self._kept.append(Finding(weight, check, path, position, offset, expected, found))

    def note(self, check: str, path: str, found: str, offset: Offset | None = None) -> None:
        self.add(check, path, expected="", found=found, offset=offset, weight=Weight.NOTE)

    def extend(self, others: Findings) -> None:
        for one in others:
            if sum(kept.weight is one.weight for kept in self._kept) < MAX_KEPT:
                self._kept.append(one)
        for weight, count in others.counts.items():
            self.counts[weight] += count

    @property
    def faults(self) -> list[Finding]:
        return [one for one in self._kept if one.weight is Weight.FAULT]

    @property
    def notes(self) -> list[Finding]:
        return [one for one in self._kept if one.weight is Weight.NOTE]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._kept)


class AsNotes(Findings):
    """Whatever is added is a note of another one's: of files that a start repairs."""

    def __init__(self, told: Findings) -> None:
        super().__init__()
        self._told = told

    def add(
        self,
        check: str,
        path: str,
        *,
        expected: str,
        found: str,
        position: int | None = None,
        offset: Offset | None = None,
        weight: Weight = Weight.NOTE,
    ) -> None:
        self._told.add(
            check, path, expected=expected, found=found, position=position, offset=offset, weight=Weight.NOTE
        )
