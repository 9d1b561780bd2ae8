"""Ports for a test that must name them, where other clusters start and stop beside it."""

from __future__ import annotations

from quorumlog.testing.ports import FIRST, LAST, STEP, NoFreePorts, PortPicker


def free_port(nodes: int = 1) -> int:
    """Of `nodes` nodes in rows that no cluster holds, and none picks meanwhile: they begin with the lowest."""
    for first in range(FIRST + STEP * ((LAST - FIRST) // STEP - nodes + 1), FIRST, -STEP):
        picker = PortPicker(first)
        try:
            return picker.pick(nodes)[0].client
        except NoFreePorts:
            pass
        finally:
            picker.close()
    raise AssertionError("every row of ports is taken")
