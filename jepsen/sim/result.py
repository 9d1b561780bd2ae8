"""What one simulation found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from jepsen.checkers.findings import Finding


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
    """wire: the transport of the data. steps: of the scheduler. options: of the command, where the plan was cut.

    exercised: what happened, and how often; 0 for a fault that never struck.
    """

    seed: int
    plan: AnyPlan
    wire: str
    verdict: Verdict
    findings: list[Finding]
    trace_hash: str
    steps: int
    virtual_s: float
    exercised: dict[str, int] = field(default_factory=dict)
    options: str = ""
