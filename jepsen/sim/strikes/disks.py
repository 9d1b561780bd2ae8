"""Disks that are slow or fail, processes that end inside a call of a disk, memory that runs out, and wrong clocks."""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.sim.failing_disk import failing_disk
from jepsen.sim.inside_calls import dies_inside_a_call, runs_out_of_memory
from jepsen.sim.scheduler import NS_PER_MS
from jepsen.sim.stage import Stage, Strike, Undo, nothing


def disk_strikes(stage: Stage) -> Mapping[str, Strike]:
    return {
        "slow-disk": lambda: _slow_disk(stage),
        "failing-disk": lambda: _failing_disk(stage),
        "dies-inside-a-call": lambda: dies_inside_a_call(stage, stage.one(stage.all)),
        "out-of-memory": lambda: runs_out_of_memory(stage, stage.one(stage.all)),
        "wall-clock": lambda: _wall_clock(stage),
    }


def _slow_disk(stage: Stage) -> Undo:
    machine = stage.one(stage.all)
    machine.slow_sync_ns = stage.rng.choice((5, 50, 400)) * NS_PER_MS

    def undo() -> None:
        machine.slow_sync_ns = 0

    return undo


def _failing_disk(stage: Stage) -> Undo:
    expected = stage.cluster.invariants.crashes_expected
    sound = [machine for machine in stage.all if machine.host not in expected]
    return failing_disk(stage.cluster, stage.one(sound), stage.rng) if sound else nothing


def _wall_clock(stage: Stage) -> Undo:
    machine = stage.one(stage.all)
    machine.clock.wall_skew_ms = stage.rng.choice((-7_200_000, -1_000, 1_000, 3_000_000))

    def undo() -> None:
        machine.clock.wall_skew_ms = 0

    return undo
