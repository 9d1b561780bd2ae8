"""Strikes that concern a quorum alone: a leader that only clients and brokers reach, and snapshots that are damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.disk import names_in
from jepsen.sim.machine.machine import Machine
from jepsen.sim.quorum.cluster import QuorumCluster, metadata_directory_id
from jepsen.sim.quorum.plan import CUT_OFF, DAMAGED, LOST, ROTTEN, UPGRADE, WIPED
from jepsen.sim.settings import METADATA_LOG
from jepsen.sim.strikes.processes import kill
from jepsen.sim.strikes.stage import Stage, Strike, Undo, nothing
from jepsen.sim.time.scheduler import NS_PER_S
from quorumlog_quorum.raft import VoterKey
from quorumlog_quorum.snapshots.names import parse_snapshot_name
from quorumlog_storage.files.disk import DiskError

_VOTERS_MIN = 3
_ASKED_NS = 5 * NS_PER_S  # longer than a request is on its way, where no link holds messages
WIPES = "disks wiped"
SNAPSHOTS_HIT = "snapshots damaged or lost"
ROTTEN_NEEDED = "rotten snapshots needed"


def quorum_strikes(stage: Stage[QuorumCluster]) -> Mapping[str, Strike]:
    return {
        "kill": lambda: kill(stage.one(stage.all)),
        "duplicating": partial(_duplicate_between_nodes, stage),
        CUT_OFF: partial(_cut_off_leader, stage),
        DAMAGED: partial(_without_newest_snapshot, stage, is_damaged=True),
        LOST: partial(_without_newest_snapshot, stage, is_damaged=False),
        ROTTEN: partial(_rot_while_needed, stage),
        UPGRADE: partial(_upgrade, stage),
        WIPED: partial(_wipe, stage),
    }


def _duplicate_between_nodes(stage: Stage[BaseCluster]) -> Undo:
    """Not between clients and brokers: a change that was carried out twice may be answered by the second try."""
    share = stage.rng.choice((0.05, 0.3))
    hosts = [machine.host for machine in stage.all]
    links = [stage.network.link(one, other) for one in hosts for other in hosts if one != other]

    def duplicate(probability: float) -> None:
        for link in links:
            link.profile = replace(link.profile, duplicate=probability)

    duplicate(share)
    return partial(duplicate, 0.0)


def _cut_off_leader(stage: Stage[BaseCluster]) -> Undo:
    """The other voters elect another one, while clients and brokers still ask this one."""
    leader = stage.cluster.active_controller()
    if leader is None:
        return nothing
    others = [machine.host for machine in stage.cluster.controllers if machine is not leader]
    for other in others:
        stage.network.cut_both(leader.host, other)

    def undo() -> None:
        for other in others:
            stage.network.heal(leader.host, other)
            stage.network.heal(other, leader.host)

    return undo


def _without_newest_snapshot(stage: Stage[QuorumCluster], *, is_damaged: bool) -> Undo:
    """A node starts, and its newest snapshot cannot be read or is gone. It has another one that reaches its log."""
    machine = stage.one(stage.all)
    path = _newest_of_two(machine)
    if path is None:
        return nothing
    machine.kill()
    if is_damaged:
        _flip(stage, machine, path)
    else:
        _remove(machine, path)
    stage.cluster.count(SNAPSHOTS_HIT)
    return machine.bring_up


def _rot_while_needed(stage: Stage[QuorumCluster]) -> Undo:
    """The newest snapshot of the leader rots while it leads, and a node that does not vote comes back without a disk.

    That node can only fetch a snapshot. The leader has another one that it could start from.
    """
    cluster = stage.cluster
    leader = cluster.active_controller()
    path = None if leader is None else _newest_of_two(leader)
    raft = None if leader is None else raft_of(leader)
    if leader is None or raft is None or path is None:
        return nothing
    _flip(stage, leader, path)
    others = [machine for machine in stage.all if machine is not leader and machine.node_id not in raft.voters]
    if not others:
        return nothing  # a follower that is far behind may need it
    machine = stage.one(others)
    machine.kill()
    cluster.forget_disk(machine)
    cluster.count(ROTTEN_NEEDED)
    return machine.bring_up


def _newest_of_two(machine: Machine) -> str | None:
    """The newest snapshot of a running node that could also start from the one before it."""
    names = [name for name in names_in(machine.disk, METADATA_LOG) if parse_snapshot_name(name) is not None]
    raft = raft_of(machine)
    if raft is None or len(names) < 2 or len(raft.log.snapshots) < 2 or raft.log.snapshots[-2].offset < raft.log.start:
        return None
    return f"{METADATA_LOG}/{names[-1]}"


def _flip(stage: Stage[QuorumCluster], machine: Machine, path: str) -> None:
    machine.disk.flip_bit(path, stage.rng.randrange(8 * machine.disk.size_of(path)))


def _upgrade(stage: Stage[QuorumCluster]) -> Undo:
    """A node of older software ends, and comes back with the newest."""
    if not stage.cluster.older:
        return nothing
    machine = stage.one(stage.cluster.older)
    machine.kill()
    stage.cluster.upgrade(machine)
    return machine.bring_up


def _wipe(stage: Stage[QuorumCluster]) -> Undo:
    """A voter loses its disk and comes back with another directory: nobody may take it for the old one.

    Only while every voter in force has its own disk and all of them run, and no removal of another one may be on its
    way: a quorum that loses its majority stays without one.
    """
    cluster = stage.cluster
    leader = cluster.active_controller()
    raft = None if leader is None else raft_of(leader)
    if raft is None or raft.history.level == 0 or len(raft.voters) < _VOTERS_MIN:
        return nothing
    if cluster.scheduler.now_ns < cluster.voters_asked_ns + _ASKED_NS or "holding" in cluster.counts:
        return nothing
    voters = [machine for machine in cluster.controllers if machine.node_id in raft.voters]
    keys = [VoterKey(machine.node_id, metadata_directory_id(machine)) for machine in voters]
    if not all(raft.voters.names(key) for key in keys) or not all(machine.alive for machine in voters):
        return nothing
    machine = stage.one(voters)
    machine.kill()
    cluster.forget_disk(machine)
    cluster.count(WIPES)
    return machine.bring_up


def _remove(machine: Machine, path: str) -> None:
    with contextlib.suppress(DiskError):  # the disk may be failing: then the file stays
        machine.disk.unlink(path)
        machine.disk.sync_directory(METADATA_LOG)
    machine.disk.take_latency_ns()
