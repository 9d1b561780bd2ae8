"""Loss 1: a topic that is created again under its old name begins where the old one's log start was.

A node stops after it has renamed the dead partition's directory and before it has forgotten the partition's recovery
point and log start. The new topic's log is opened with them: it claims to begin at the old start, joins the ISR without
the records before it, and as leader makes the others drop theirs.
"""

from __future__ import annotations

import errno

import pytest

from jepsen.sim.machine.disk_faults import Fail, Fault, FaultPlan, Operation, PowerCut
from jepsen.sim.machine.machine import Machine
from tests.losses.cluster_world import World, world
from tests.losses.promises import promised
from tests.rules import rule

LEADER, VICTIM, OTHER = 11, 12, 13
OLD_START = 6
FAULTS = [("kill", PowerCut()), ("EIO", Fail(errno.EIO)), ("ENOSPC", Fail(errno.ENOSPC))]  # memory outlives a kill


@rule("storage 3.7")
@pytest.mark.parametrize("fault", [c[1] for c in FAULTS], ids=[c[0] for c in FAULTS])
def test_a_topic_made_anew_keeps_what_it_acknowledged(fault: Fault) -> None:
    with world() as w:
        victim = w.cluster.machines["b2"]
        w.create("t", [LEADER, VICTIM, OTHER])
        w.produce("t", [f"old {n}" for n in range(OLD_START + 2)])
        w.delete_records("t", OLD_START)
        delete_and_stop(w, victim, fault)
        w.create("t", [LEADER, VICTIM, OTHER])
        acknowledged = w.produce("t", [f"new {n}" for n in range(OLD_START)])
        lead(w, victim)
        found = w.read("t")
    with promised():
        assert acknowledged == {n: f"new {n}" for n in range(OLD_START)}
        assert found == acknowledged


def delete_and_stop(w: World, victim: Machine, fault: Fault) -> None:
    """Delete the topic; the victim stops right after the rename is durable, and starts again."""
    sound = victim.disk.faults
    victim.disk.faults = strikes_after_the_rename(fault)
    w.delete("t")
    w.run_for(2)
    victim.disk.faults = sound
    w.cluster.findings.found.clear()  # that the process ended was meant
    w.restart(victim)
    w.prepare(w.cluster.is_healthy, "the victim is back")


def strikes_after_the_rename(fault: Fault) -> FaultPlan:
    renamed: list[Operation] = []

    def plan(operation: Operation) -> Fault | None:
        if operation.kind == "rename" and operation.path.endswith("/t-0"):
            renamed.append(operation)
            return None
        changes = operation.kind in ("open", "pwritev", "sync", "rename", "unlink")
        partitions = "__cluster_metadata" not in operation.path
        return fault if renamed and changes and partitions else None

    return plan


def lead(w: World, victim: Machine) -> None:
    """Let the victim become leader in an orderly election: it is in sync, and next in the order of replicas."""
    w.prepare(w.cluster.is_healthy, "the victim is in sync")
    leader = w.cluster.machines["b1"]
    leader.kill()
    w.prepare(lambda: w.partition("t").leader == VICTIM, "the victim leads")
    w.run_for(5)
    leader.start()
    w.prepare(w.cluster.is_healthy, "the old leader is back")
