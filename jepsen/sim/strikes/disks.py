"""Disks that are slow or fail, processes that end inside a call of a disk, memory that runs out, and wrong clocks.

Of a failing disk some or all writes and syncs fail with EIO or ENOSPC until it is replaced. A process whose only log
directory has failed ends itself, as it should; so it may end while its disk fails, and a start on that disk may fail
too. Synced data stays: a record acknowledged by all in-sync replicas is on their disks, and a failing disk loses none
of it. So the checkers need no exception for this fault.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Mapping, Sequence

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.disk_faults import Fail, Fault, FaultPlan, Operation, ShortWrite
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import METADATA_LOG
from jepsen.sim.strikes.inside_calls import dies_inside_a_call, runs_out_of_memory
from jepsen.sim.strikes.sick_disks import hanging_disk, unreadable_disk
from jepsen.sim.strikes.stage import Stage, Strike, Undo, nothing
from jepsen.sim.time.scheduler import NS_PER_MS

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


def disk_strikes(stage: Stage[BaseCluster]) -> Mapping[str, Strike]:
    return {
        "slow-disk": lambda: _slow_disk(stage),
        "failing-disk": lambda: _sick(stage, failing_disk, stage.all),
        "hanging-disk": lambda: _sick(stage, hanging_disk, stage.all),
        "unreadable-disk": lambda: _sick(stage, unreadable_disk, stage.cluster.brokers),
        "dies-inside-a-call": lambda: dies_inside_a_call(stage, stage.one(stage.all)),
        "out-of-memory": lambda: runs_out_of_memory(stage, stage.one(stage.all)),
        "wall-clock": lambda: _wall_clock(stage),
    }


def _slow_disk(stage: Stage[BaseCluster]) -> Undo:
    machine = stage.one(stage.all)
    machine.slow_sync_ns = stage.rng.choice((5, 50, 400)) * NS_PER_MS

    def undo() -> None:
        machine.slow_sync_ns = 0

    return undo


def _sick(
    stage: Stage[BaseCluster],
    strike: Callable[[BaseCluster, Machine, random.Random], Undo],
    machines: Sequence[Machine],
) -> Undo:
    """One disk has one of these faults at a time."""
    expected = stage.cluster.invariants.crashes_expected
    sound = [machine for machine in machines if machine.host not in expected]
    return strike(stage.cluster, stage.one(sound), stage.rng) if sound else nothing


def _wall_clock(stage: Stage[BaseCluster]) -> Undo:
    machine = stage.one(stage.all)
    machine.clock.wall_skew_ms = stage.rng.choice((-7_200_000, -1_000, 1_000, 3_000_000))

    def undo() -> None:
        machine.clock.wall_skew_ms = 0

    return undo
