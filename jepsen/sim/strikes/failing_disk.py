"""A disk that starts to fail: some or all writes and syncs fail with EIO or ENOSPC until it is replaced.

A process whose only log directory has failed ends itself, as it should; so it may end while its disk fails, and a start
on that disk may fail too. Synced data stays: a record acknowledged by all in-sync replicas is on their disks, and a
failing disk loses none of it. So the checkers need no exception for this fault.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.disk_faults import Fail, Fault, FaultPlan, Operation, ShortWrite
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import METADATA_LOG

_WRITES, _SYNCS, _NAMES = ("pwritev",), ("sync", "sync_directory"), ("rename", "open", "unlink", "truncate")
_KINDS = (_WRITES, _SYNCS, _WRITES + _SYNCS, _WRITES + _SYNCS + _NAMES)
_FAULTS: tuple[Fault, ...] = (Fail(errno.EIO), Fail(errno.ENOSPC), ShortWrite(10))
_RATES = (1.0, 0.2, 0.02)


def failing_disk(cluster: BaseCluster, machine: Machine, rng: random.Random) -> Callable[[], None]:
    """Returns the undo function: it kills the process, if it still runs, and starts it on a working disk."""
    expected = cluster.invariants.crashes_expected
    remove = machine.fault_plans.add(_plan(rng))
    expected[machine.host] = None

    def undo() -> None:
        remove()
        expected.pop(machine.host, None)
        machine.kill()
        if not machine.alive:
            machine.start()

    return undo


def _plan(rng: random.Random) -> FaultPlan:
    kinds, rate, fault = rng.choice(_KINDS), rng.choice(_RATES), rng.choice(_FAULTS)
    spares_metadata = rng.random() < 0.5

    def plan(operation: Operation) -> Fault | None:
        if operation.kind not in kinds or (spares_metadata and operation.path.startswith(METADATA_LOG)):
            return None
        return fault if rng.random() < rate else None

    return plan
