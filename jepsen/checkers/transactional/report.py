"""Collects the findings of one check, at most FINDINGS_MAX of a name, and counts all of them."""

from __future__ import annotations

from collections import Counter

from jepsen.checkers.findings import Finding

FINDINGS_MAX = 10  # of one name


class Report:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.number: Counter[str] = Counter()

    def found(self, name: str, text: str) -> None:
        self.number[name] += 1
        if self.number[name] <= FINDINGS_MAX:
            self.findings.append(Finding(name, text))
