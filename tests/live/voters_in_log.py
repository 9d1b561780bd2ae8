"""Local nodes whose voters are in the metadata log: formatted with a bootstrap checkpoint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from quorumlog.ids import Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.testing.layout import Layout, NodeFiles
from quorumlog.testing.nodes import format_layout
from quorumlog.testing.ports import HOST
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_quorum.raft import MAX_LEVEL, Voter, VoterSet
from quorumlog_quorum.raft.voters import record_of
from quorumlog_quorum.snapshots import SnapshotHeading, SnapshotId, write_snapshot
from quorumlog_storage.directory.directory import read_meta
from quorumlog_storage.edge.disk import RealDisk


def format_with_voters(layout: Layout) -> None:
    """Every node is a voter; no configuration names the voters."""
    format_layout(layout)  # with the static set, which is taken out of the configurations afterwards
    for node in layout.nodes:
        use_bootstrap_servers(node.config, layout.nodes)
    voters = VoterSet(_voter_of(node) for node in layout.nodes)
    heading = SnapshotHeading(
        id=SnapshotId(0, 0), last_contained_timestamp_ms=0, kraft_version=MAX_LEVEL, voters=record_of(voters)
    )
    for node in layout.nodes:
        directory = node.data / METADATA_DIRECTORY
        directory.mkdir()
        write_snapshot(RealDisk(), str(directory), heading, ())


def use_bootstrap_servers(config: Path, nodes: Sequence[NodeFiles]) -> None:
    servers = ",".join(f"{HOST}:{node.ports.internal}" for node in nodes)
    line = f"controller.quorum.bootstrap.servers={servers}"
    config.write_text(re.sub("^controller.quorum.voters=.*$", line, config.read_text(), flags=re.MULTILINE))


def directory_id(node: NodeFiles) -> Uuid:
    return read_meta(RealDisk(), str(node.data)).directory_id


def _voter_of(node: NodeFiles) -> Voter:
    return Voter(
        node_id=node.node_id,
        directory_id=directory_id(node),
        endpoint=Endpoint(name="INTERNAL", host=HOST, port=node.ports.internal),
        max_version=MAX_LEVEL,
    )
