"""What one simulation found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from jepsen.checkers.findings import Finding
from jepsen.sim.blow import Blow


class Verdict(Enum):
    VALID = "VALID"
    INVALID = "INVALID"
    VACUOUS = "VACUOUS"  # nothing is wrong, but hardly anything happened


class AnyPlan(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def faults(self) -> tuple[str, ...]: ...


@dataclass(slots=True, kw_only=True)
class Result:
    """wire: the transport of the data. steps: of the scheduler. lines: of the trace.

    options: of the command, where the run was cut. blows: the strikes of this run, in their order.
    began_ns: virtual time of the first moment at which one may strike; -1: the run ended before. seconds: from then on
    to the end of the strikes, if nothing was found.
    exercised: what happened, and how often; 0 for a fault that never struck.
    """

    seed: int
    plan: AnyPlan
    wire: str
    verdict: Verdict
    findings: list[Finding]
    trace_hash: str
    steps: int
    lines: int
    virtual_s: float
    exercised: dict[str, int] = field(default_factory=dict)
    options: str = ""
    blows: tuple[Blow, ...] = ()
    began_ns: int = -1
    seconds: int = 0


def rate_of(lines: int, processor_s: float) -> str:
    """How fast a simulation, or several, went: lines of the trace per second of processor time."""
    rate = lines / processor_s if processor_s > 0 else 0.0
    return f"{lines:,} trace lines, {rate:,.0f} a second of processor time"
