"""A whole strike: from a healthy cluster, over its blows, to a healthy cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jepsen.checkers.findings import Finding
from jepsen.live.blows import ActiveBlow, blow_at
from jepsen.live.cluster.nodes import LiveCluster
from jepsen.live.expectations import most_pause_ms
from jepsen.live.plan import DISK_BLOWS, Blow, Step, Strike, victims
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.testing.nodes import NodeState

WHOLE_TIMEOUT_S = 60.0
OBSERVE_S = 0.25


@dataclass(slots=True, kw_only=True)
class BlowRecord:
    """What one blow did. from_ms, until_ms: since the start of the run; until: its end, not the node's recovery.

    spared: partitions that the node leads elsewhere than where it was struck.
    """

    node_id: NodeId
    blow: Blow | Step
    aim: str
    way: str
    from_ms: int
    until_ms: int = -1
    bit: bool = False
    evidence: str = ""
    spared: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class StrikeRecord:
    """whole_ms: when the cluster was whole again; -1: it was not, within the time for it."""

    strike: Strike
    expected_ms: int
    blows: list[BlowRecord] = field(default_factory=list)
    began_ms: int = 0
    ended_ms: int = -1
    whole_ms: int = -1

    @property
    def bit(self) -> bool:
        return bool(self.blows) and all(blow.bit for blow in self.blows)


class Striker:
    """Carries out strikes one after the other. records, findings: grow with each, also if it is interrupted."""

    def __init__(self, cluster: LiveCluster, now_ms: Callable[[], int]) -> None:
        self._cluster, self._now_ms = cluster, now_ms
        self.records: list[StrikeRecord] = []
        self.findings: list[Finding] = []

    def carry_out(self, strike: Strike) -> None:
        """Raises KeyboardInterrupt like any wait; the blows are ended then, too. Raises AttachFailed."""
        time.sleep(strike.calm_ms / 1_000)
        record = StrikeRecord(strike=strike, expected_ms=most_pause_ms(strike), began_ms=self._now_ms())
        self.records.append(record)
        active = self._aimed(strike, record)
        try:
            for blow, told in zip(active, record.blows, strict=True):
                told.from_ms = self._now_ms()
                blow.begin()
            self._hold(active, strike.hold_ms)
        finally:
            for blow, told in zip(active, record.blows, strict=True):
                told.until_ms = self._now_ms()
                blow.end()
                told.bit, told.evidence = blow.evidence.bit, str(blow.evidence)
                told.spared = blow.evidence.spared
                self.findings += blow.evidence.findings
            record.ended_ms = self._now_ms()
        if self.wait_whole([blow.node_id for blow in record.blows if blow.blow in DISK_BLOWS]):
            record.whole_ms = self._now_ms()

    def _aimed(self, strike: Strike, record: StrikeRecord) -> list[ActiveBlow]:
        struck, active = self._victims(strike), list[ActiveBlow]()
        for (blow, node_id), (_, target) in zip(struck, strike.blows, strict=True):
            assert isinstance(blow, Blow), f"{blow} belongs to a scenario"
            way = self._cluster.ways.name(blow) if blow in DISK_BLOWS else "a signal"
            record.blows.append(
                BlowRecord(node_id=node_id, blow=blow, aim=str(target), way=way, from_ms=self._now_ms())
            )
            active.append(blow_at(self._cluster, node_id, blow))
        return active

    def _victims(self, strike: Strike) -> list[tuple[Blow | Step, NodeId]]:
        state = self._cluster.state()
        leaders, controller = (state.leaders, state.controller) if state else ({}, NO_NODE)
        return victims(strike, self._cluster.ids, leaders, controller)

    def _hold(self, active: list[ActiveBlow], hold_ms: int) -> None:
        until_ms = self._now_ms() + hold_ms
        while (left_ms := until_ms - self._now_ms()) > 0:
            time.sleep(min(left_ms / 1_000, OBSERVE_S))
            for blow in active:
                blow.observe()

    def wait_whole(self, may_end: Sequence[NodeId] = ()) -> bool:
        """Wait until every node serves and every replica is in sync. False, with a finding, if that takes too long.

        may_end: nodes whose disk was struck; one may end itself only now.
        """
        deadline = time.monotonic() + WHOLE_TIMEOUT_S
        while missing := self._cluster.why_not_whole():
            self._start_the_ended(may_end)
            if time.monotonic() > deadline:
                self._find("not-recovered", f"{WHOLE_TIMEOUT_S:g} s after the last fault: {missing}")
                return False
            time.sleep(OBSERVE_S)
        return True

    def _start_the_ended(self, may_end: Sequence[NodeId]) -> None:
        """A node that ends although nothing strikes it is a finding; it is started again."""
        for node_id in self._cluster.nodes.in_state(NodeState.STOPPED):
            if node_id not in may_end:
                self._find("node-ended", f"node {node_id} ended by itself: {self._cluster.nodes.log_tail(node_id)}")
            self._cluster.nodes.start([node_id])

    def _find(self, name: str, text: str) -> None:
        self.findings.append(Finding(name, text, self._now_ms() * 1_000_000))
