"""Waits for nodes to serve. If one ends, the end of its log is shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from quorumlog.ids import NodeId
from quorumlog.testing.nodes import LocalNodes, NodeEnded
from quorumlog_cli.errors import CliError, Exit
from quorumlog_cli.local.log_lines import parse_line


def wait_ready(nodes: LocalNodes, node_ids: Sequence[NodeId] | None = None) -> None:
    """Wait until these nodes (default: all) serve. Raises CliError, TimedOut."""
    try:
        nodes.wait_ready(node_ids)
    except NodeEnded as error:
        for line in error.tail.splitlines():
            print(parse_line(error.node_id, line).render(), file=sys.stderr)
        hint = f"quorumlog logs {error.node_id} shows more"
        raise CliError(Exit.FAILED, f"node {error.node_id} ended while it started", hint) from error
