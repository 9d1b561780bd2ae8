"""Faults of single operations of a simulated disk, and ready-made plans of when they occur.

A plan is any function from an `Operation` to a fault or None. It is called before the operation changes anything.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

READ_OPS = {  # what the real disk calls them in its errors; a change is called by its kind
    "pread": "read",
    "read_bytes": "read",
    "exists": "look-up",
    "is_directory": "look-up",
    "identity": "look-up",
    "free_bytes": "free space",
    "total_bytes": "size",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the disk. index: 0 for the disk's first call. size: bytes written or read, else 0."""

    index: int
    kind: str  # the name of the method: "pwritev", "sync", "rename", ...
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Fail:
    """The operation raises DiskError and does nothing. A failed sync also loses the data to be synced."""

    errno: int = errno.EIO


@dataclass(frozen=True, slots=True)
class ShortWrite:
    """`pwritev` writes only the first `written` bytes and returns that number. Other operations fail with ENOSPC."""

    written: int


@dataclass(frozen=True, slots=True)
class PowerCut:
    """The machine dies at this operation. written: bytes of the write done before; -1: the whole write or sync."""

    written: int = 0


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The operation raises MemoryError. done: a write or a sync does its work first; other operations do nothing."""

    done: bool = False


Fault = Fail | ShortWrite | PowerCut | OutOfMemory
FaultPlan = Callable[[Operation], Fault | None]


class PowerLost(BaseException):
    """Raised at the operation that a PowerCut struck. A BaseException, so that no `except Exception` catches it."""


def faults_at(faults: Mapping[int, Fault]) -> FaultPlan:
    """Faults by index of the operation."""
    return lambda operation: faults.get(operation.index)


class FaultPlans:
    """A plan made of plans that come and go, each asked in the order in which it came; the first fault counts."""

    def __init__(self) -> None:
        self._plans: dict[int, FaultPlan] = {}
        self._next = 0

    def __call__(self, operation: Operation) -> Fault | None:
        for plan in self._plans.values():
            fault = plan(operation)
            if fault is not None:
                return fault
        return None

    def add(self, plan: FaultPlan) -> Callable[[], None]:
        """Returns the function that removes it."""
        number, self._next = self._next, self._next + 1
        self._plans[number] = plan

        def remove() -> None:
            self._plans.pop(number, None)

        return remove


def faults_by_rate(rng: random.Random, rates: Mapping[str, float], fault: Fault | None = None) -> FaultPlan:
    """Each operation of a kind in `rates` fails with that probability (0 to 1)."""

    def plan(operation: Operation) -> Fault | None:
        rate = rates.get(operation.kind, 0.0)
        return (fault or Fail()) if rate and rng.random() < rate else None

    return plan


def no_faults(operation: Operation) -> Fault | None:
    """The plan of a disk without faults."""
    return None


def errno_of(fault: Fault) -> int:
    """Of the error that the call raises."""
    return fault.errno if isinstance(fault, Fail) else errno.ENOSPC
