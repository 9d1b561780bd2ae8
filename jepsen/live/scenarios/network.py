"""One node's links to the others are cut, cut in one direction, delayed, or lose their connections.

Clients reach every node all the time. A fault has bitten if the flows that it is meant for were held, delayed or
dropped, while those that it leaves alone went on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

from jepsen.live.blows import Evidence
from jepsen.live.cluster.flows import PASS, Counts, Pair, Rule, around
from jepsen.live.cluster.nodes import LiveCluster
from jepsen.live.plan import Step
from quorumlog.ids import NodeId

HOLD = Rule(holds=True)
SLOW = Rule(delay_ms=150)
LOSSY = Rule(drop_one_in=40)
RULES: Mapping[Step, tuple[Rule, Rule]] = {  # (of what the node sends, of what it gets)
    Step.CUT: (HOLD, HOLD),
    Step.DEAF: (PASS, HOLD),
    Step.MUTE: (HOLD, PASS),
    Step.DELAY: (SLOW, SLOW),
    Step.DROP: (LOSSY, LOSSY),
}
LEAST_STRUCK = 3  # pieces of bytes


class LinksStruck:
    def __init__(self, cluster: LiveCluster, node_id: NodeId, step: Step) -> None:
        assert cluster.links is not None, "the scenario's shape has a proxy"
        self._links, self._node_id, self._step = cluster.links, node_id, step
        self._others = [other for other in cluster.ids if other != node_id]
        self._before: Mapping[Pair, Counts] = {}
        self._in_force = False
        self.evidence = Evidence()

    def begin(self) -> None:
        outgoing, incoming = RULES[self._step]
        self._before = self._links.counts()
        self._in_force = True
        self._links.set_rules(around(self._node_id, self._others, outgoing=outgoing, incoming=incoming))

    def observe(self) -> None:
        pass

    def end(self) -> None:
        if not self._in_force:
            return
        self._in_force = False
        after = self._links.counts()
        self._links.set_rules({})
        sent = [(self._node_id, other) for other in self._others]
        got = [(other, self._node_id) for other in self._others]
        (sent_passed, sent_struck), (got_passed, got_struck) = (self._added(after, pairs) for pairs in (sent, got))
        beside_passed, beside_struck = self._added(after, [pair for pair in after if self._node_id not in pair])
        outgoing, incoming = RULES[self._step]
        self.evidence.bit = (
            all(
                struck >= LEAST_STRUCK if rule is not PASS else struck == 0
                for rule, struck in ((outgoing, sent_struck), (incoming, got_struck))
            )
            and beside_passed > 0
            and beside_struck == 0
        )
        self.evidence.note(
            f"pieces it sent: {sent_passed} passed, {sent_struck} struck; got: {got_passed} passed, {got_struck} struck"
            f"; between the others: {beside_passed} passed, {beside_struck} struck"
        )

    def _added(self, after: Mapping[Pair, Counts], pairs: list[Pair]) -> tuple[int, int]:
        """(passed, held or delayed or dropped) since `begin`."""
        passed = struck = 0
        for pair in pairs:
            now, before = astuple(after.get(pair, Counts())), astuple(self._before.get(pair, Counts()))
            added = [new - old for new, old in zip(now, before, strict=True)]
            passed, struck = passed + added[0], struck + sum(added[1:])
        return passed, struck
