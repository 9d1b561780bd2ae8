"""`up` in the foreground: shows important log lines until Ctrl-C, then stops the nodes."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from quorumlog.ids import NodeId
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog_cli.local.log_lines import LogFollower
from quorumlog_cli.terminal import output

POLL_S = 0.2


class Stopped(Exception):
    """A signal asked this process to end."""


@contextmanager
def stop_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP (the terminal was closed) end the block as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(nodes: LocalNodes, level: str) -> None:
    """Print log lines of `level` and above, and changes of the nodes' states. Returns when every node has ended."""
    followers = [LogFollower(node.node_id, node.log, from_end=True) for node in nodes.layout.nodes]
    states = {node_id: nodes.state(node_id) for node_id in nodes.ids}
    while True:
        for line in (line for follower in followers for line in follower.read_new()):
            if line.at_least(level):
                print(line.render(), file=sys.stderr)
        states = _tell_changes(nodes, states)
        if all(state is NodeState.STOPPED for state in states.values()):
            return
        time.sleep(POLL_S)


def _tell_changes(nodes: LocalNodes, before: dict[NodeId, NodeState]) -> dict[NodeId, NodeState]:
    now = {node_id: nodes.state(node_id) for node_id in nodes.ids}
    for node_id in nodes.ids:
        if now[node_id] is not before[node_id]:
            output.say(f"  node {node_id} is {now[node_id].value}")
    return now
