"""A scripted fault: a voter is restarted between two requests of one epoch.

Two candidates ask for votes in one epoch (rivals.py). The third voter gets the first request alone. When it has
voted, or when it follows the winner, it is killed or loses its power, and comes back. Then the second request arrives.
What the voter promised before its restart must hold: it votes for nobody else in that epoch (vote-granted-twice,
vote-once).

Limit: a held request belongs to its connection. If that was open before the restart, the request ends with it, and the
candidate hears that the voter could not be reached. It reaches the new process only over a connection made later.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.metadata.durable_state import durable_state
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message
from jepsen.sim.strikes.scripts.aimed import Script, bring_back, let_pass
from jepsen.sim.strikes.scripts.rivals import VoteHolder
from quorumlog.ids import Epoch
from quorumlog_quorum.raft import RaftRole

RESTARTED = "voters restarted between two requests"
_RIVALS_MS, _PROMISE_MS, _START_MS = 4_000, 900, 2_000


def restarted_voter(cluster: SimCluster, rng: random.Random) -> Script:
    leader = cluster.active_controller()
    if leader is None or leader.paused:
        return
    holder, voter, cut = VoteHolder(cluster), None, ""
    try:
        leader.kill()
        yield from let_pass(cluster, rng.randint(20, 400))
        bring_back(leader)
        yield holder.rivals, _RIVALS_MS
        if not holder.rivals():
            return
        epoch = max(epoch for epoch, candidates in holder.asked.items() if len(candidates) > 1)
        first, second = rng.sample(list(holder.asked[epoch]), 2)
        voter = next((machine for machine in cluster.controllers if machine.host not in holder.asked[epoch]), None)
        if voter is None or not voter.alive:
            return
        follows = rng.random() < 0.3
        if not follows:  # its vote is lost, so the first candidate cannot win, and tell the voter that it leads
            cut = first
            cluster.network.cut(voter.host, first)
        cluster.network.release_held(_between(first, voter))
        yield _promised(voter, epoch, follows=follows), _PROMISE_MS
        rng.choice((voter.kill, voter.power_cut))()
        yield from let_pass(cluster, rng.randint(0, 30))
        bring_back(voter)
        yield lambda: raft_of(voter) is not None, _START_MS
        raft = raft_of(voter)
        if raft is not None and raft.epoch == epoch:
            cluster.count(RESTARTED)
        cluster.network.release_held(_between(second, voter))
        yield from let_pass(cluster, 200)
    finally:
        bring_back(leader)
        if voter is not None:
            bring_back(voter)
            if cut:
                cluster.network.heal(voter.host, cut)
        holder.release()


def _between(candidate: str, voter: Machine) -> Callable[[Message], bool]:
    return lambda message: (message.source, message.destination) == (candidate, voter.host)


def _promised(voter: Machine, epoch: Epoch, *, follows: bool) -> Callable[[], bool]:
    """The voter has voted in this epoch or, if `follows`, it follows the epoch's leader."""

    def holds() -> bool:
        raft = raft_of(voter)
        if raft is None or raft.epoch != epoch:
            return False
        return raft.role.role is RaftRole.FOLLOWER if follows else durable_state(voter).voted is not None

    return holds
