"""Asks a simulated controller to put the voters into the log: kraft.version 1."""

from __future__ import annotations

from contextlib import suppress

from jepsen.sim.machine.machine import Machine
from quorumlog.errors import ApiError


def upgrade_kraft_version(machine: Machine | None) -> None:
    """machine: of the active controller, which refuses until all voters have told it about themselves; None: none."""
    if machine is None or machine.loop is None or machine.node is None or machine.node.driver is None:
        return
    loop, driver = machine.loop, machine.node.driver

    async def upgrade() -> None:
        with suppress(ApiError):
            await driver.upgrade_kraft_version()

    loop.deliver(lambda: loop.create_task(upgrade()))
