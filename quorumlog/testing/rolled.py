"""Restarts nodes of a local cluster for a roll (`quorumlog.rolling`), beside the looks at the cluster."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from quorumlog.ids import NodeId
from quorumlog.rolling.picture import Node
from quorumlog.testing.layout import LayoutError
from quorumlog.testing.nodes import STOP_TIMEOUT_S, LocalNodes, NodeEnded
from quorumlog.testing.waiting import TimedOut

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin


class RollFailed(Exception):
    """A roll stopped before its last node. The message says where and why."""


def roll_nodes(nodes: LocalNodes, admin: Admin) -> None:
    """Restart all, whatever becomes unavailable meanwhile. Raises RollFailed."""
    from quorumlog.rolling.driving import AskedCluster, carry_out
    from quorumlog.rolling.obstacles import Limits
    from quorumlog.rolling.roll import Ending, Roll

    restarter, told = LocalRestarter(nodes), list[str]()
    try:
        end = carry_out(
            Roll(nodes.ids, Limits(), may_take=True),
            AskedCluster(admin),
            restarter,
            now_ms=lambda: round(time.monotonic() * 1000),
            sleep_s=time.sleep,
            tell=told.append,
        )
    finally:
        restarter.close()
    if end.ending is not Ending.DONE:
        raise RollFailed(f"{end.ending.value}, node {end.at}: {end.reason}; before: {'; '.join(told)}")


class LocalRestarter:
    """A thread for each restart. It is no daemon, so that a program which leaves does not leave a node stopped."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes
        self._thread: threading.Thread | None = None
        self._failure = ""

    def begin(self, node: Node) -> None:
        assert self._thread is None or not self._thread.is_alive(), "one at a time"
        self._failure = f"the restart of node {node.node_id} broke off"  # unless the thread comes to its end
        self._thread = threading.Thread(target=self._restart, args=(node.node_id,), name=f"restart {node.node_id}")
        self._thread.start()

    def ended(self) -> str | None:
        if self._thread is None or self._thread.is_alive():
            return None
        return self._failure

    def close(self) -> None:
        """Waits for the restart that runs."""
        if self._thread is not None:
            self._thread.join()

    def _restart(self, node_id: NodeId) -> None:
        if node_id not in self._nodes.ids:
            self._failure = f"node {node_id} is not one of this folder's nodes {self._nodes.ids}"
            return
        try:
            killed = self._nodes.stop([node_id])
            self._nodes.start([node_id])
            self._nodes.wait_ready([node_id])
        except NodeEnded as error:
            self._failure = f"node {node_id} ended while it started: {error.tail}"
        except (LayoutError, TimedOut, OSError) as error:
            self._failure = f"node {node_id}: {error}"
        else:
            late = f"node {node_id} did not stop within {STOP_TIMEOUT_S:g} s and was killed; it has been started again"
            self._failure = late if killed else ""
