"""Disks that change hands: what is mounted at a path of a machine is taken away, and something else comes in its place.

An operator does it, so it is durable at once, and no fault of the node's own calls meets it.
"""

from __future__ import annotations

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.page_cache import DirectoryNode, FileNode, Node
from quorumlog_storage.files.disk import name_of, parent_of


def exchange(disk: SimDisk, path: str, node: DirectoryNode | None) -> DirectoryNode | None:
    """Put a directory at `path`, or nothing. Returns what was there. Files that are open stay what they are."""
    above = _directory(disk, parent_of(path))
    before = above.current.get(name_of(path))
    names = {name: held for name, held in above.current.items() if name != name_of(path)}
    above.change(names if node is None else {**names, name_of(path): node})
    above.sync()
    return before if isinstance(before, DirectoryNode) else None


def copy_of(disk: SimDisk, path: str) -> DirectoryNode:
    """A copy of the directory with all that is in it, as readers see it now; all of it is durable."""
    return _copy(_directory(disk, path))


def files_in(node: DirectoryNode, above: str = "") -> dict[str, bytes]:
    """The bytes of all files in it and below it, by path."""
    found: dict[str, bytes] = {}
    for name in sorted(node.current):
        held = node.current[name]
        if isinstance(held, FileNode):
            found[above + name] = bytes(held.current)
        else:
            found |= files_in(held, f"{above}{name}/")
    return found


def _copy(node: DirectoryNode) -> DirectoryNode:
    names: dict[str, Node] = {
        name: FileNode.holding(bytes(held.current)) if isinstance(held, FileNode) else _copy(held)
        for name, held in node.current.items()
    }
    return DirectoryNode(current=names, durable=names)


def _directory(disk: SimDisk, path: str) -> DirectoryNode:
    node = disk.root
    for name in path.split("/"):
        if name:
            held = node.current[name]
            assert isinstance(held, DirectoryNode), f"{path} is a directory"
            node = held
    return node
