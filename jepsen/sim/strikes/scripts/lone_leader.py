"""A scripted fault: both other voters restart, and only the leader's log is long enough to win the next election.

The leader appends what it cannot commit, and gives its leadership up. Then one of the others comes back. It has
forgotten the session in which the leader called it before, so the leader must prove itself anew before it can ask for
a vote (`quorumlog/rpc/calling/prover.py`); and nobody else can win. If nothing else strikes in this run (`alone`):

- lone-leader-is-elected: the quorum is led again ELECTED_MS after that voter was started.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.profiles.plan import LONE_LEADER
from jepsen.sim.strikes.scripts.aimed import Script, bring_back, run_script
from jepsen.sim.strikes.stage import Stage, Strike
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog_quorum.raft import RaftRole

LONELY = "leaders left by both other voters"
ELECTED_MS = 6_000
_HEALTHY_MS, _APPEND_MS, _RESIGN_MS = 15_000, 6_000, 6_000


def lone_leader_strikes(stage: Stage[SimCluster], *, alone: bool) -> Mapping[str, Strike]:
    """alone: nothing else strikes in this run."""
    cluster = stage.cluster
    return {LONE_LEADER: lambda: run_script(cluster, lone_leader(cluster, stage.rng, alone))}


def lone_leader(cluster: SimCluster, rng: random.Random, alone: bool) -> Script:
    yield cluster.is_healthy, _HEALTHY_MS
    leader = cluster.active_controller()
    assert leader is not None, "healthy"
    others = [machine for machine in cluster.controllers if machine is not leader]
    end = _end_of(leader)
    try:
        for one in others:
            rng.choice((one.kill, one.power_cut))()
        yield lambda: _end_of(leader) > end, _APPEND_MS
        yield lambda: not _leads(leader), _RESIGN_MS
        cluster.count(LONELY)
        bring_back(rng.choice(others))
        until_ns = cluster.scheduler.now_ns + ELECTED_MS * NS_PER_MS
        yield (
            lambda: cluster.active_controller() is not None or cluster.scheduler.now_ns >= until_ns,
            ELECTED_MS + 1_000,
        )
        if alone and cluster.active_controller() is None:
            cluster.findings.broken("lone-leader-is-elected", f"{leader.host} is not after {ELECTED_MS} ms")
    finally:
        for one in others:
            bring_back(one)


def _end_of(machine: Machine) -> int:
    raft = raft_of(machine)
    return 0 if raft is None else raft.log.accepted_end


def _leads(machine: Machine) -> bool:
    raft = raft_of(machine)
    return raft is not None and raft.role.role is RaftRole.LEADER
