"""What an invariant of a simulated cluster may listen to: empty hooks, of which each invariant overrides its own.

Hooks run at nearly every step of a simulation, so only those that are overridden are ever called (`overridden`).
A hook reads, and reports to `Findings`: it never changes the cluster, so that a trace is the same with or without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jepsen.sim.machine.machine import Machine
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image


class Invariant:
    def on_image(self, image: Image) -> None:
        """The newest committed image is another one."""

    def after_step(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process. changed: the replicas that the step may have changed."""

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """As `after_step`, only after steps that may have changed a replica."""

    def on_cut(self, machine: Machine, log: str) -> None:
        """A partition's log became shorter, on this machine or on one that lost power."""

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A disk has finished an operation."""


def overridden(invariants: Iterable[Invariant], *names: str) -> tuple[Callable[..., Any], ...]:
    """The hooks of these names that are not empty, in the invariants' order."""
    return tuple(
        getattr(one, name)
        for one in invariants
        for name in names
        if getattr(type(one), name) is not getattr(Invariant, name)
    )
