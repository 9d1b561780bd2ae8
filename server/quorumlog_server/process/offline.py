"""What of a node's disks is offline, for the log, the metrics and `quorumlog status`: why, and what to do next."""

from __future__ import annotations

from quorumlog_server.process.node import Node


def offline_directories(node: Node) -> list[str]:
    """A text for each, in the order of the configuration."""
    return [str(life.failure) for life in node.lives if life.is_offline and life.failure is not None]


def offline_replicas(node: Node) -> list[str]:
    """A text for each replica that is offline although its directory is not, by topic and partition."""
    found = {} if node.broker is None else node.broker.data_plane.unreadable.by_name
    next_step = "repair or replace the disk, then restart the node"
    twice = [] if node.broker is None else list(node.broker.data_plane.store.refused.values())
    return twice + [f"replica {name} is offline: {why}; {next_step}" for name, why in sorted(found.items())]
