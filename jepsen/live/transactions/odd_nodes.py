"""Three nodes that are started by `odd_node`, so that their clocks can jump and some transactional ids are old."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from quorumlog.ids import NodeId
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker

NODES = 3
CLOCK = "clock"  # the file of a node that says how far its clock is ahead, in ms
OLD = "old-"  # how the names of old transactional ids begin
START_TIMEOUT_S = 60.0


class OddNodes(LocalNodes):
    def command(self, node: NodeFiles) -> list[str]:
        launcher = "jepsen.live.transactions.odd_node"
        return [sys.executable, "-P", "-m", launcher, str(node.folder), "-c", str(node.config)]

    def set_clock(self, node_id: NodeId, ahead_ms: int) -> None:
        """Let the node's clock jump. It stays there, also when the node is started again."""
        file = self.layout.node(node_id).folder / CLOCK
        whole = file.with_suffix(".tmp")
        whole.write_text(str(ahead_ms))
        whole.replace(file)


@contextmanager
def odd_nodes(root: Path, settings: Mapping[str, str]) -> Iterator[OddNodes]:
    """A running cluster; its files go with it. Raises LayoutError, NodeEnded, NoFreePorts, TimedOut."""
    picker = PortPicker()
    try:
        nodes = OddNodes.create(root, NODES, settings, picker)
        assert isinstance(nodes, OddNodes)
        try:
            nodes.start()
            nodes.wait_ready(timeout_s=START_TIMEOUT_S)
            yield nodes
        finally:
            nodes.stop()
            shutil.rmtree(root, ignore_errors=True)
    finally:
        picker.close()
