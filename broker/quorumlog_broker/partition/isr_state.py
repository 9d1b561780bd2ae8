"""The states of an ISR at its leader: committed by the controller, or with a change that was proposed.

The controller may or may not have made a proposed change already. So the high watermark needs the larger of the two
sets, the *maximal* ISR (KIP-497).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NodeId

Isr = tuple[NodeId, ...]  # without duplicates, in the order of the controller's record


@dataclass(frozen=True, slots=True)
class Committed:
    """What the controller committed last."""

    isr: Isr

    @property
    def maximal(self) -> Isr:
        return self.isr


@dataclass(frozen=True, slots=True)
class PendingExpand:
    """It was proposed to add `joining`. isr: what the controller committed last."""

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
    """It was proposed to remove `leaving`. isr: what the controller committed last."""

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
