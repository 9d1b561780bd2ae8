"""One log directory of a broker fails while the other one serves: errors, a hang, an unmounted file system.

The metadata log lies in the first directory, so these strike the second one, and the broker must go on: its process may
not end, and the first directory stays online (invariants/placement/directories.py). Once the disk works again, an
operator brings the directory back at run time (`quorumlog log-dirs online`) or restarts the broker.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from contextlib import suppress

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.disk_faults import Fail, Fault, FaultPlan, Operation
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import SECOND_DATA
from jepsen.sim.strikes.stage import Stage, Strike, Undo, nothing
from quorumlog.errors import ApiError
from quorumlog_storage.writer.directory_life import DirectoryLife, DirectoryState

RETURNED, RESTARTED = "directories brought back", "restarts for a directory"
_CHANGES = ("pwritev", "sync", "sync_directory", "rename", "open", "unlink", "truncate", "make_directory")
_KINDS = (("pwritev",), ("sync", "sync_directory"), _CHANGES)
_RATES = (1.0, 0.2)
_TRY_MS, _TRIES = 500, 30


def directory_strikes(stage: Stage[SimCluster]) -> Mapping[str, Strike]:
    return {
        "failing-directory": lambda: _on_one(stage, _fails),
        "hanging-directory": lambda: _on_one(stage, _hangs),
        "vanished-directory": lambda: _on_one(stage, _vanishes),
    }


def _on_one(stage: Stage[SimCluster], strike: Callable[[Stage[SimCluster], Machine], Undo]) -> Undo:
    """A broker has one of these faults at a time, and none that may end its process."""
    sick, expected = stage.cluster.invariants.sick_directories, stage.cluster.invariants.crashes_expected
    able = [
        machine
        for machine in stage.cluster.brokers
        if SECOND_DATA in machine.config.log_dirs and machine.host not in sick and machine.host not in expected
    ]
    if not able:
        return nothing
    machine = stage.one(able)
    sick[machine.host] = None
    end = strike(stage, machine)

    def undo() -> None:
        end()
        sick.pop(machine.host, None)
        machine.bring_up()
        _bring_back(stage, machine, _TRIES if stage.rng.random() < 0.7 else 0)

    return undo


def _fails(stage: Stage[SimCluster], machine: Machine) -> Undo:
    rng = stage.rng
    kinds, rate, fault = rng.choice(_KINDS), rng.choice(_RATES), Fail(rng.choice((errno.EIO, errno.ENOSPC)))
    plan: FaultPlan = lambda operation: _fault(operation, kinds, fault) if rng.random() < rate else None  # noqa: E731
    return machine.fault_plans.add(plan)


def _fault(operation: Operation, kinds: tuple[str, ...], fault: Fault) -> Fault | None:
    return fault if operation.kind in kinds and operation.path.startswith(SECOND_DATA) else None


def _hangs(stage: Stage[SimCluster], machine: Machine) -> Undo:
    """Calls that are given up return late, or never, because the process was restarted."""
    machine.disk.hang.begin(SECOND_DATA, reads=stage.rng.random() < 0.5)
    machine.note_struck(SECOND_DATA)
    return machine.disk.hang.release


def _vanishes(stage: Stage[SimCluster], machine: Machine) -> Undo:
    """The file system is unmounted while the process uses it. A process that starts meanwhile may refuse to."""
    machine.disk.mounts.unmount(SECOND_DATA, leaves_a_directory=stage.rng.random() < 0.5)
    machine.note_struck(SECOND_DATA)

    def undo() -> None:
        machine.disk.mounts.mount(SECOND_DATA)

    return undo


def _bring_back(stage: Stage[SimCluster], machine: Machine, tries: int) -> None:
    """Until the directory is online: ask the process a number of times, then restart it."""
    life = _offline(machine)
    if life is None or machine.host in stage.cluster.invariants.sick_directories:
        return
    if life.state is DirectoryState.FAILED and tries == 0:
        stage.cluster.count(RESTARTED)
        machine.kill()
        machine.bring_up()
        return
    if life.state is DirectoryState.FAILED:
        tries -= 1
        _ask(stage, machine)
    stage.later(_TRY_MS, lambda: _bring_back(stage, machine, tries))


def _offline(machine: Machine) -> DirectoryLife | None:
    lives = () if machine.node is None else machine.node.lives
    return next((life for life in lives if life.path == SECOND_DATA and not life.is_online), None)


def _ask(stage: Stage[SimCluster], machine: Machine) -> None:
    node, loop = machine.node, machine.loop
    if node is None or node.broker is None or loop is None or machine.paused:
        return
    directory_return = node.broker._directory_return

    async def ask() -> None:
        with suppress(ApiError):
            await directory_return.begin(SECOND_DATA)
            stage.cluster.count(RETURNED)

    loop.create_task(ask(), name="log-dirs online")
