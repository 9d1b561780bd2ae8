"""A scripted fault: two candidates of one epoch, and a voter that gets both requests at once.

A tie is rare by chance, because pre-votes, jitter and ranks prevent it. So the leader dies and returns as a voter, and
vote requests (not pre-votes) are held until two candidates have asked in one epoch.
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import SimCluster
from jepsen.sim.network.message import Message, Phase, Verdict
from jepsen.sim.strikes.scripts.aimed import Script, bring_back, let_pass
from quorumlog.ids import Epoch
from quorumlog.messages.quorum import VoteRequest
from quorumlog.rpc.calls import BY_REQUEST

_RIVALS_MS = 4_000
_CALL = BY_REQUEST[VoteRequest]


class VoteHolder:
    """Holds every vote request, not pre-votes, until `stop`. asked: candidates by epoch, in the order of asking."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self.asked: dict[Epoch, dict[str, None]] = {}
        cluster.intercept = self._look

    def rivals(self) -> bool:
        return any(len(candidates) > 1 for candidates in self.asked.values())

    def release(self) -> None:
        self._cluster.intercept = None
        self._cluster.network.release_held()

    def _look(self, message: Message) -> Verdict:
        if message.path != _CALL.method.path or message.phase is not Phase.REQUEST:
            return Verdict.PASS
        request = _CALL.codec.decode_request(message.data)
        if request.pre_vote:
            return Verdict.PASS
        self.asked.setdefault(request.epoch, {})[message.source] = None
        return Verdict.HOLD


def rival_candidates(cluster: SimCluster, rng: random.Random) -> Script:
    leader = cluster.active_controller()
    if leader is None or leader.paused:
        return
    holder = VoteHolder(cluster)
    try:
        leader.kill()
        yield from let_pass(cluster, rng.randint(20, 400))
        bring_back(leader)
        yield holder.rivals, _RIVALS_MS
    finally:
        bring_back(leader)
        holder.release()
