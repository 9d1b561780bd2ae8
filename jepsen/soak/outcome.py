"""How a soak went: its verdict, and the lines that people read."""

from __future__ import annotations

from dataclasses import dataclass

from jepsen.soak.gauges import TOO_LITTLE, VALID, Finding, Gauges, Minimum, lines_of

FINDINGS_TOLD = 20


@dataclass(slots=True, kw_only=True)
class Outcome:
    """length: e.g. "365 virtual days". took_s: of the wall clock. repeat: the command.

    findings: broken promises, passed bounds, growth. lacking: what happened too rarely to prove anything.
    """

    seed: int
    length: str
    took_s: float
    findings: list[Finding]
    lacking: list[Minimum]
    counts: dict[str, int]
    gauges: Gauges
    repeat: str

    @property
    def verdict(self) -> str:
        return "INVALID" if self.findings else TOO_LITTLE if self.lacking else VALID

    @property
    def lines(self) -> list[str]:
        lines = [*lines_of(self.gauges)]
        lines += [f"{name:36} {count:>12,}" for name, count in self.counts.items()]
        lines += [str(finding) for finding in self.findings[:FINDINGS_TOLD]]
        lines += [f"  too little: {minimum}" for minimum in self.lacking]
        lines.append(f"seed {self.seed}: {self.verdict}   {self.length} in {self.took_s:.0f} s")
        if self.findings:
            lines.append(f"repeat: {self.repeat}")
        return lines
