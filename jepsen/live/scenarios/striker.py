"""Carries out a scenario's strikes: the victim of each is chosen when it begins, by what the step needs."""

from __future__ import annotations

from jepsen.live.blows import ActiveBlow
from jepsen.live.plan import DIRECTORY_STEPS, MOVE_STEPS, NETWORK_STEPS, Step, Strike
from jepsen.live.scenarios.directories import DirectoryStruck, aim_at_directory
from jepsen.live.scenarios.moves import MovedUnderKill
from jepsen.live.scenarios.network import LinksStruck
from jepsen.live.scenarios.upgrades import Upgraded
from jepsen.live.striker import BlowRecord, Striker, StrikeRecord
from quorumlog.ids import NodeId


class ScenarioStriker(Striker):
    """`Striker` that knows the steps of scenarios, too. A step has one blow."""

    def _aimed(self, strike: Strike, record: StrikeRecord) -> list[ActiveBlow]:
        if not isinstance(strike.kind, Step):
            return super()._aimed(strike, record)
        ((_, target),) = strike.blows
        node_id, blow = self._chosen(strike.kind, strike)
        told = BlowRecord(
            node_id=node_id, blow=strike.kind, aim=str(target), way=strike.kind.value, from_ms=self._now_ms()
        )
        record.blows.append(told)
        return [blow]

    def _chosen(self, step: Step, strike: Strike) -> tuple[NodeId, ActiveBlow]:
        """Raises TimedOut, QuorumlogError."""
        if step in MOVE_STEPS:
            moved = MovedUnderKill(self._cluster, step)
            return moved.choose(), moved
        ((_, node_id),) = self._victims(strike)
        if step in DIRECTORY_STEPS:
            node_id = aim_at_directory(self._cluster, node_id)
            return node_id, DirectoryStruck(self._cluster, node_id, step)
        if step in NETWORK_STEPS:
            return node_id, LinksStruck(self._cluster, node_id, step)
        return node_id, Upgraded(self._cluster, node_id, step)
