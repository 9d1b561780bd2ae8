"""What a proxy does to the bytes from one node to another: a rule for each direction, and counts of what it met. Pure.

A flow is all bytes from one node to another, whichever of them opened the connection. A rule of one flow alone is an
asymmetric fault. TCP repeats what a network loses, so bytes that are held go on when the fault ends; none is left out
in the middle of a connection.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from quorumlog.ids import NodeId

Pair = tuple[NodeId, NodeId]  # from, to


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """holds: nothing passes. delay_ms: of each piece. drop_one_in: one of so many ends its connection; 0: none."""

    holds: bool = False
    delay_ms: int = 0
    drop_one_in: int = 0


PASS = Rule()


@dataclass(slots=True)
class Counts:
    """Pieces of bytes by what became of them; connections that a drop has ended."""

    passed: int = 0
    held: int = 0
    delayed: int = 0
    dropped: int = 0


@dataclass(slots=True)
class Flows:
    """The rules in force. Changed and read in the proxy's loop only."""

    rng: random.Random
    rules: dict[Pair, Rule] = field(default_factory=dict)
    counts: dict[Pair, Counts] = field(default_factory=dict)

    def rule(self, pair: Pair) -> Rule:
        return self.rules.get(pair, PASS)

    def count(self, pair: Pair) -> Counts:
        return self.counts.setdefault(pair, Counts())

    def meet(self, pair: Pair) -> tuple[bool, int]:
        """(the connection ends, ms to wait) for one piece that is not held, counted."""
        rule, counts = self.rule(pair), self.count(pair)
        if rule.drop_one_in and self.rng.randrange(rule.drop_one_in) == 0:
            counts.dropped += 1
            return True, 0
        if rule.delay_ms:
            counts.delayed += 1
            return False, rule.delay_ms
        counts.passed += 1
        return False, 0


def around(node: NodeId, others: list[NodeId], *, outgoing: Rule, incoming: Rule) -> dict[Pair, Rule]:
    """Rules for all flows of one node."""
    rules = {(node, other): outgoing for other in others}
    return {**rules, **{(other, node): incoming for other in others}}
