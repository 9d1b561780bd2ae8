"""Waits for nodes to serve. If one ends, the end of its log is shown; if a quorum is missing, that is said."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from quorumlog.ids import NodeId
from quorumlog.testing.nodes import READY_TIMEOUT_S, LocalNodes, NodeEnded, NodeState
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.local.log_lines import parse_line
from quorumlog_cli.terminal.errors import CliError, Exit

LEADERLESS = "the leader of the quorum is unknown"  # as a node says at /readyz
ELECTION_S = 5.0  # how long a node may be without a leader although one can be elected


def wait_ready(nodes: LocalNodes, node_ids: Sequence[NodeId] | None = None) -> None:
    """Wait until these nodes (default: all) serve. Raises CliError, TimedOut."""
    try:
        nodes.wait_ready(node_ids)
    except NodeEnded as error:
        raise _ended(error) from error


def wait_restarted(nodes: LocalNodes, node_id: NodeId) -> None:
    """Wait until the node serves. Raises CliError(UNHEALTHY) where a quorum is missing: it would wait in vain."""
    leaderless_since: float | None = None

    def is_done() -> bool:
        nonlocal leaderless_since
        if nodes.state(node_id) is NodeState.STOPPED:
            raise NodeEnded(node_id, nodes.log_tail(node_id))
        readiness, lost = nodes.readiness(node_id), missing_quorum(nodes)
        if LEADERLESS not in readiness.reason or not lost:
            leaderless_since = None
            return readiness.ready
        leaderless_since = leaderless_since or time.monotonic()
        if time.monotonic() - leaderless_since >= ELECTION_S:
            raise CliError(Exit.UNHEALTHY, f"node {node_id} runs, but {lost}", hint_to_start(nodes))
        return False

    try:
        wait_until(is_done, READY_TIMEOUT_S, f"node {node_id} to be ready", lambda: nodes.readiness(node_id).reason)
    except NodeEnded as error:
        raise _ended(error) from error


def missing_quorum(nodes: LocalNodes) -> str:
    """What it means that fewer nodes run than a majority of those that `up` made controllers; "" where they do.

    Whoever has started them.
    """
    alive = [node_id for node_id in nodes.serving() if nodes.state(node_id) is not NodeState.PAUSED]
    needed = len(nodes.ids) // 2 + 1
    if len(alive) >= needed:
        return ""
    verb = "runs" if len(alive) == 1 else "run"
    return (
        f"the quorum is lost: {len(alive)} of {len(nodes.ids)} controllers {verb}, {needed} are needed. Topics and "
        "settings cannot change, and no partition gets another leader"
    )


def hint_to_start(nodes: LocalNodes) -> str:
    stopped = [node_id for node_id in nodes.ids if nodes.state(node_id) is not NodeState.RUNNING]
    one = f", quorumlog restart {stopped[0]} one of them" if stopped else ""
    return f"quorumlog up -d --data {nodes.layout.root} starts all that are stopped{one}"


def _ended(error: NodeEnded) -> CliError:
    for line in error.tail.splitlines():
        print(parse_line(error.node_id, line).render(), file=sys.stderr)
    hint = f"quorumlog logs {error.node_id} shows more"
    return CliError(Exit.FAILED, f"node {error.node_id} ended while it started", hint)
