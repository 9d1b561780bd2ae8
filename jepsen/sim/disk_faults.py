"""What can go wrong with one operation of a simulated disk, and ready-made plans of when it does.

A plan is any function from an `Operation` to a fault or None. It is asked before the operation touches anything.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One call at the seam. index: 0 for the first call of this disk's life. size: bytes written or read, else 0."""

    index: int
    kind: str  # the name of the method: "pwritev", "sync", "rename", ...
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Fail:
    """The operation raises DiskError and does nothing; a failed sync also forgets what it should have kept."""

    errno: int = errno.EIO


@dataclass(frozen=True, slots=True)
class ShortWrite:
    """`pwritev` writes only the first `written` bytes and says so. Other operations fail with ENOSPC."""

    written: int


@dataclass(frozen=True, slots=True)
class PowerCut:
    """The machine dies at this operation. written: bytes of a write done before; -1: all of the write or sync."""

    written: int = 0


Fault = Fail | ShortWrite | PowerCut
FaultPlan = Callable[[Operation], Fault | None]


class PowerLost(BaseException):
    """Raised out of the operation at which a PowerCut struck: no `except Exception` of the engine may see it."""


def faults_at(faults: Mapping[int, Fault]) -> FaultPlan:
    """Faults by the index of the operation."""
    return lambda operation: faults.get(operation.index)


def faults_by_rate(rng: random.Random, rates: Mapping[str, float], fault: Fault | None = None) -> FaultPlan:
    """Each operation of a kind in `rates` fails with that probability, 0..1."""

    def plan(operation: Operation) -> Fault | None:
        rate = rates.get(operation.kind, 0.0)
        return (fault or Fail()) if rate and rng.random() < rate else None

    return plan
