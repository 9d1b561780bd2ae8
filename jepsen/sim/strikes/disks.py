"""Disks that are slow or fail, processes that end inside a call of a disk, memory that runs out, and wrong clocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.strikes.failing_disk import failing_disk
from jepsen.sim.strikes.inside_calls import dies_inside_a_call, runs_out_of_memory
from jepsen.sim.strikes.sick_disks import hanging_disk, unreadable_disk
from jepsen.sim.strikes.stage import Stage, Strike, Undo, nothing
from jepsen.sim.time.scheduler import NS_PER_MS


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
