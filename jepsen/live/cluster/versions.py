"""Nodes that run the software of this tree or that of an earlier commit, from a git worktree of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jepsen.tree import ROOT
from quorumlog.ids import NodeId
from quorumlog.testing.layout import Layout, LayoutError, NodeFiles
from quorumlog.testing.node_config import CUT_LINKS_KEY, properties_of
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker

# Software from before nodes proved themselves to each other: the secret in clear, metadata.version 2.
OLD = "1d201935be080a87736a2c2c6947eebbc935695c"
OLD_LEVEL = 2
YOUNGER_KEYS = ("paths.relative.to=", f"{CUT_LINKS_KEY}=")  # of those that a local cluster's nodes are given
NO_HISTORY = "this tree has no git history, as an installed package has none"  # a listed reason to skip
GIT_TIMEOUT_S = 120.0
FORMAT_TIMEOUT_S = 60.0
IN_CLEAR = {"cluster.secret.in.clear": "true"}  # old nodes do not know the key, and new ones need it beside old ones


PREVIOUS = "HEAD^1"  # what main was before this commit
IN_TREE = (".", "storage", "quorum", "broker", "server", "cli", "console")  # folders of a recent tree's packages


def has_history(commit: str = OLD) -> bool:
    """In CI its lack is an error: the clones there are whole."""
    found = _git("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0
    assert found or "CI_MARK" not in os.environ, f"CI needs the commit {commit}; clone the whole history"
    return found


@contextmanager
def old_tree(folder: Path, commit: str = OLD) -> Iterator[Path]:
    """The earlier commit's files, as long as the block runs."""
    done = _git("worktree", "add", "--detach", "--force", str(folder), commit)
    assert done.returncode == 0, done.stderr
    try:
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False)


class VersionedNodes(LocalNodes):
    """Every node runs the old software until `upgrade`. old: the tree of it."""

    def __init__(self, layout: Layout, picker: PortPicker) -> None:
        super().__init__(layout, picker)
        self.old = Path()
        self.new_ones: dict[NodeId, None] = {}

    @classmethod
    def of_old_software(cls, root: Path, old: Path, picker: PortPicker) -> VersionedNodes:
        """Three nodes, their directories formatted by the old software."""
        nodes = cls.create(root, 3, {}, picker, lambda layout: format_by_tree(layout, old))
        assert isinstance(nodes, VersionedNodes)
        nodes.old = old
        return nodes

    def command(self, node: NodeFiles) -> list[str]:
        if node.node_id in self.new_ones:
            return super().command(node)
        return [*by_tree(self.old), "cli.server", "-c", str(node.config)]

    def upgrade(self, node_id: NodeId) -> None:
        """Restart the node with the software of this tree, as an operator does it while old nodes are there."""
        self._switch(node_id, True, IN_CLEAR)

    def roll_back(self, node_id: NodeId) -> None:
        self._switch(node_id, False, {})

    def require_proof(self, node_id: NodeId) -> None:
        """Restart a new node without the setting for old ones."""
        self._switch(node_id, True, {})

    def _switch(self, node_id: NodeId, new: bool, changes: dict[str, str]) -> None:
        killed = self.stop([node_id])
        assert not killed, f"node {node_id} did not stop by itself: {self.log_tail(node_id)}"
        if new:
            self.new_ones[node_id] = None
        else:
            self.new_ones.pop(node_id, None)
        node = self.layout.node(node_id)
        node.config.write_text(properties_of(node, self.layout.nodes, changes))
        if not new:
            suit_old_software(node)
        self.start([node_id])


def suit_old_software(node: NodeFiles) -> None:
    """It refuses a file with keys that are younger than it is."""
    lines = node.config.read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(YOUNGER_KEYS)).replace(
        "log.dirs=data\n", f"log.dirs={node.data}\n"
    )
    node.config.write_text(text)


def packages_of(tree: Path) -> str:
    """A PYTHONPATH by which Python finds a recent tree's packages, and not those that are installed."""
    return os.pathsep.join(str(tree / folder) for folder in IN_TREE)


def by_tree(tree: Path) -> list[str]:
    """The beginning of a command: Python with that tree's packages before those that are installed."""
    return ["/usr/bin/env", f"PYTHONPATH={tree}", sys.executable, "-P", "-m"]


def format_by_tree(layout: Layout, old: Path) -> None:
    """Raises LayoutError."""
    for node in layout.nodes:
        suit_old_software(node)
    command = [*by_tree(old), "cli.main", "storage", "format", "-t", layout.cluster_id]
    for node in layout.nodes:
        command += ["-c", str(node.config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise LayoutError(done.stderr)
