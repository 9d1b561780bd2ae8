"""Faults that hold single messages, or follow a script."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from jepsen.sim.cluster import SimCluster
from jepsen.sim.network.message import Message, Phase, Verdict
from jepsen.sim.profiles.plan import (
    KILLED_COORDINATOR,
    KILLED_HOLDER,
    KILLED_IN_BATCH,
    LATE_DELETION,
    LATE_LEADER,
    LEFT_BEHIND,
    NEW_DISK,
    OLDER_DISK,
    SECOND_COPY,
)
from jepsen.sim.strikes.scripts.aimed import Script, fenced_joiner, run_script, stale_proposal
from jepsen.sim.strikes.scripts.killed_coordinator import killed_coordinator, killed_holder, killed_in_batch
from jepsen.sim.strikes.scripts.late_deletion import late_deletion
from jepsen.sim.strikes.scripts.late_leader import late_leader
from jepsen.sim.strikes.scripts.late_settings import (
    LATE_METADATA,
    RAISED_DURABILITY,
    RAISED_MINIMUM,
    LateMetadata,
    raised_durability,
    raised_minimum,
)
from jepsen.sim.strikes.scripts.left_behind import left_behind
from jepsen.sim.strikes.scripts.new_disk import new_disk
from jepsen.sim.strikes.scripts.older_disk import older_disk
from jepsen.sim.strikes.scripts.restarted_voter import restarted_voter
from jepsen.sim.strikes.scripts.rivals import rival_candidates
from jepsen.sim.strikes.scripts.second_copy import second_copy
from jepsen.sim.strikes.scripts.whole_isr import whole_isr
from jepsen.sim.strikes.stage import Stage, Strike, Undo
from quorumlog.messages.controller import AlterPartitionRequest
from quorumlog.rpc.calls import BY_REQUEST

_ALTER_PARTITION = BY_REQUEST[AlterPartitionRequest].method.path
_SCRIPTS = {
    "fenced-joiner": fenced_joiner,
    "stale-proposal": stale_proposal,
    "rival-candidates": rival_candidates,
    "restarted-voter": restarted_voter,
    "whole-isr": whole_isr,
    OLDER_DISK: older_disk,
    NEW_DISK: new_disk,
    KILLED_COORDINATOR: killed_coordinator,
    KILLED_HOLDER: killed_holder,
    KILLED_IN_BATCH: killed_in_batch,
    RAISED_MINIMUM: raised_minimum,
    RAISED_DURABILITY: raised_durability,
    SECOND_COPY: second_copy,
    LATE_LEADER: late_leader,
    LATE_DELETION: late_deletion,
    LEFT_BEHIND: left_behind,
}


def scripted_strikes(stage: Stage[SimCluster]) -> Mapping[str, Strike]:
    scripts: dict[str, Strike] = {name: partial(_run, stage, script) for name, script in _SCRIPTS.items()}
    return {
        "hold-alter-partition": lambda: _hold_alter_partition(stage),
        LATE_METADATA: lambda: LateMetadata(stage.cluster, stage.one(stage.cluster.brokers)).end,
        **scripts,
    }


def _run(stage: Stage[SimCluster], script: Callable[[SimCluster, random.Random], Script]) -> Undo:
    return run_script(stage.cluster, script(stage.cluster, stage.rng))


def _hold_alter_partition(stage: Stage[SimCluster]) -> Undo:
    """AlterPartition requests arrive late; the joining replica may die meanwhile."""

    def intercept(message: Message) -> Verdict:
        if message.path == _ALTER_PARTITION and message.phase is Phase.REQUEST and stage.rng.random() < 0.5:
            return Verdict.HOLD
        return Verdict.PASS

    stage.cluster.intercept = intercept

    def undo() -> None:
        stage.cluster.intercept = None
        stage.network.release_held()

    return undo
