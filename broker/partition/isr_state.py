"""What a leader knows of its in-sync replicas: agreed with the controller, or asked for and not yet answered.

While a change is asked for, the controller may or may not have made it already, so whoever counts replicas counts the
larger of the two sets, the *maximal* ISR (KIP-497; RELIABILITY §replication, rule 3).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NodeId

Isr = tuple[NodeId, ...]  # without duplicates, in the order of the controller's record


@dataclass(frozen=True, slots=True)
class Committed:
    """The controller's last word."""

    isr: Isr

    @property
    def maximal(self) -> Isr:
        return self.isr


@dataclass(frozen=True, slots=True)
class PendingExpand:
    """`joining` is asked for. isr: the controller's last word."""

    isr: Isr
    joining: NodeId

    def __post_init__(self) -> None:
        assert self.joining not in self.isr, (self.joining, self.isr)

    @property
    def maximal(self) -> Isr:
        return (*self.isr, self.joining)

    @property
    def proposed(self) -> Isr:
        return self.maximal


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """It is asked for that `leaving` go. isr: the controller's last word."""

    isr: Isr
    leaving: Isr

    def __post_init__(self) -> None:
        assert self.leaving and all(node in self.isr for node in self.leaving), (self.leaving, self.isr)

    @property
    def maximal(self) -> Isr:
        return self.isr

    @property
    def proposed(self) -> Isr:
        return tuple(node for node in self.isr if node not in self.leaving)


IsrState = Committed | PendingExpand | PendingShrink
