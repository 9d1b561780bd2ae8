"""Disks that hang, and disks that do not give back what they hold.

A node whose only directory is offline ends itself, as it should; so it may end while its disk is sick. Nothing that was
synced is lost, so the checkers need no exception: an acknowledged record never depends on the disk that hangs.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.disk_faults import Fail, Fault, FaultPlan, Operation
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DATA, METADATA_LOG
from jepsen.sim.time.scheduler import NS_PER_MS

Undo = Callable[[], None]
_LATE_MS = (5, 500)  # between the return of late calls and the restart
_READS: tuple[tuple[str, ...], ...] = (("pread",), ("pread", "read_bytes"), ("pread", "open", "read_bytes", "list"))
_RATES = (1.0, 0.2)


def hanging_disk(cluster: BaseCluster, machine: Machine, rng: random.Random) -> Undo:
    """Calls do not return: for a moment, or until the node has given up. Then they return late, or never.

    Returns the undo function. A node that has given up something is restarted.
    """
    cluster.invariants.crashes_expected[machine.host] = None
    machine.disk.hang.begin(DATA, reads=rng.random() < 0.5)
    returns_late, late_ms = rng.random() < 0.5, rng.randint(*_LATE_MS)

    def undo() -> None:
        if returns_late:
            machine.disk.hang.release()
            cluster.scheduler.call_later(late_ms * NS_PER_MS, restart)
        else:
            machine.kill()
            machine.disk.hang.release()
            restart()

    def restart() -> None:
        cluster.invariants.crashes_expected.pop(machine.host, None)
        if is_sick(machine):
            machine.kill()
        if not machine.alive:
            machine.start()

    return undo


def unreadable_disk(cluster: BaseCluster, machine: Machine, rng: random.Random) -> Undo:
    """Some or all reads of one partition, or of all logs, fail with EIO. The undo function restarts the node."""
    cluster.invariants.crashes_expected[machine.host] = None
    remove = machine.fault_plans.add(_unreadable(machine, rng))

    def undo() -> None:
        remove()
        cluster.invariants.crashes_expected.pop(machine.host, None)
        machine.kill()
        machine.start()

    return undo


def is_sick(machine: Machine) -> bool:
    """Whether its process is ending, or has taken something offline."""
    node = machine.node
    if node is None or node.fatal is not None or any(life.is_offline for life in node.lives):
        return True
    return node.broker is not None and bool(node.broker.data_plane.unreadable.by_name)


def _unreadable(machine: Machine, rng: random.Random) -> FaultPlan:
    kinds, rate, prefix = rng.choice(_READS), rng.choice(_RATES), _prefix(machine, rng)
    spares_metadata = rng.random() < 0.7

    def plan(operation: Operation) -> Fault | None:
        if operation.kind not in kinds or not operation.path.startswith(prefix):
            return None
        if spares_metadata and operation.path.startswith(METADATA_LOG):
            return None
        return Fail(errno.EIO) if rng.random() < rate else None

    return plan


def _prefix(machine: Machine, rng: random.Random) -> str:
    """Of one of its partitions, or of everything."""
    broker = None if machine.node is None else machine.node.broker
    replicas = [] if broker is None else broker.data_plane.registry.replicas.values()
    paths = [f"{one.queue.directory.path if one.queue else DATA}/{one.name}/" for one in replicas]
    return rng.choice(paths) if paths and rng.random() < 0.6 else f"{DATA}/"
