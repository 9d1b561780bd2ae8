"""Faults inside one call of a disk: the process or the machine ends there, or memory or descriptors run out.

Between two events of the simulation a node is at rest. These strikes end it in the middle of a truncation, a roll, a
removal or a checkpoint, where some calls have been made and the rest have not. Memory may run out before a call does
anything, or after its work was done, when the caller is not told that it was.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.disk_faults import Fail, Fault, FaultPlan, Operation, OutOfMemory, PowerCut
from jepsen.sim.machine.machine import Machine
from jepsen.sim.strikes.stage import Stage, Undo, nothing

_PLACES: dict[str, tuple[tuple[str, ...], str]] = {  # kinds of calls, and what their path contains
    "truncate": (("truncate",), ".log"),
    "remove": (("unlink", "remove_tree"), "/data"),
    "rename": (("rename",), "/data"),
    "names": (("sync_directory", "make_directory"), "/data"),
    "append": (("pwritev",), ".log"),
    "sync": (("sync",), ".log"),
    "checkpoint": (("pwritev", "sync", "rename"), "checkpoint"),
    "vote": (("pwritev", "sync", "rename"), "quorum-state"),
}
_MEMORY_KINDS = ("pwritev", "sync", "pread", "read_bytes", "open", "truncate", "rename", "list")
_DESCRIPTOR_KINDS = ("open", "list", "read_bytes", "sync_directory")
_RATES = (0.3, 0.05, 0.01)
_CALLS_PASSED = 6  # at most, before the strike


def dies_inside_a_call(stage: Stage[BaseCluster], machine: Machine) -> Undo:
    """The next or a later call of one kind never returns: the process was killed there, or the power went."""
    if machine.host in stage.cluster.invariants.crashes_expected:
        return nothing
    rng = stage.rng
    place = rng.choice(tuple(_PLACES))
    kinds, part = _PLACES[place]
    end = rng.choice((machine.kill, machine.power_cut))
    left = [rng.randrange(_CALLS_PASSED)]

    def plan(operation: Operation) -> Fault | None:
        if operation.kind not in kinds or part not in operation.path or not machine.alive or machine.is_doomed:
            return None
        left[0] -= 1
        if left[0] >= 0:
            return None
        stage.cluster.count("died inside calls")
        stage.cluster.count(f"died at {place}")
        machine.doom(end)
        return PowerCut(written=rng.choice((-1, 0, rng.randrange(1, max(2, operation.size)))))

    return _during(machine, plan, after=machine.bring_up)


def runs_out_of_memory(stage: Stage[BaseCluster], machine: Machine) -> Undo:
    """Some calls raise MemoryError, or find no descriptor. A process may end itself; what it answers must be true."""
    expected = stage.cluster.invariants.crashes_expected
    if machine.host in expected:
        return nothing
    rng = stage.rng
    lacks_descriptors = rng.random() < 0.5
    possible = _DESCRIPTOR_KINDS if lacks_descriptors else _MEMORY_KINDS
    kinds = tuple(rng.sample(possible, rng.randint(1, len(possible))))
    rate = rng.choice(_RATES)
    expected[machine.host] = None

    def plan(operation: Operation) -> Fault | None:
        if operation.kind not in kinds or rng.random() >= rate:
            return None
        stage.cluster.count("descriptor errors" if lacks_descriptors else "memory errors")
        if lacks_descriptors:
            return Fail(errno.EMFILE)
        return OutOfMemory(done=rng.random() < 0.5)

    def restart() -> None:
        expected.pop(machine.host, None)
        machine.kill()
        machine.bring_up()

    return _during(machine, plan, after=restart)


def _during(machine: Machine, plan: FaultPlan, after: Callable[[], None]) -> Undo:
    """Faults by `plan`, on top of those that there are."""
    remove = machine.fault_plans.add(plan)

    def undo() -> None:
        remove()
        after()

    return undo
