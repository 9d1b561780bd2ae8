"""Processes that end, stand still, or come and go; and machines that lose their power."""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.strikes.stage import Stage, Strike, Undo


def process_strikes(stage: Stage[BaseCluster]) -> Mapping[str, Strike]:
    cluster = stage.cluster
    return {
        "kill-controller": lambda: kill(stage.one(cluster.controllers)),
        "kill-leader": lambda: kill(cluster.active_controller() or stage.one(cluster.controllers)),
        "kill-broker": lambda: kill(stage.one(cluster.brokers)),
        "power-one": lambda: _power([stage.one(stage.all)]),
        "power-all": lambda: _power(stage.all),
        "pause": lambda: _pause(stage.one(stage.all)),
        "restart-clean": lambda: _restart(stage.one(stage.all)),
        "stopped-clients": lambda: _stop_clients(stage),
        "restart-storm": lambda: _storm(stage, stage.one(stage.all)),
    }


def kill(machine: Machine) -> Undo:
    machine.kill()
    return machine.bring_up


def _power(machines: list[Machine]) -> Undo:
    for machine in machines:
        machine.power_cut()

    def undo() -> None:
        for machine in machines:
            machine.bring_up()

    return undo


def _pause(machine: Machine) -> Undo:
    machine.pause()
    return machine.resume


def _stop_clients(stage: Stage[BaseCluster]) -> Undo:
    """Producers or readers stand still (SIGSTOP) and take no answers, so that the brokers' buffers fill."""
    loop = stage.cluster.clients[stage.rng.choice(sorted(stage.cluster.clients))]
    loop.pause()
    return loop.resume


def _restart(machine: Machine) -> Undo:
    machine.stop()

    def undo() -> None:
        machine.kill()
        machine.bring_up()

    return undo


def _storm(stage: Stage[BaseCluster], machine: Machine) -> Undo:
    going = [True]

    def again() -> None:
        if going[0]:
            machine.kill()
            machine.bring_up()
            stage.later(stage.rng.randint(50, 400), again)

    def undo() -> None:
        going[0] = False
        machine.bring_up()

    again()
    return undo
