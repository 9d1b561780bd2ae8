"""Links between the nodes of a local cluster that are cut.

Each node has a file of the addresses that it cannot reach (`debug.cut.links.file`), and reads it when it is told to.
Two nodes are apart if the file of each names the other: a link is cut by the one who calls. Clients reach every node.
A cut stays while one node of the cluster runs, also over restarts; a cluster that starts from nothing begins whole.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

from quorumlog.ids import NodeId
from quorumlog.testing.layout import Layout, LayoutError, NodeFiles
from quorumlog.testing.node_config import CUT_LINKS_KEY
from quorumlog.testing.ports import HOST
from quorumlog.testing.probe import ask_cut_links
from quorumlog.testing.processes import ProcessId
from quorumlog.testing.waiting import wait_until

TAKEN_TIMEOUT_S = 10.0
Link = tuple[NodeId, NodeId]  # from, to: `from` cannot call `to`
Group = NodeId | Collection[NodeId]


class NoCuts(LayoutError):
    """The links of a node cannot be cut."""


def links_between(groups: Sequence[Group], everybody: Collection[NodeId]) -> set[Link]:
    """Both directions of each link between two groups. One group alone is cut from all others.

    A node that is in no group keeps its links to all. Raises ValueError for a node that does not exist or stands in two
    groups.
    """
    sets = [frozenset([group] if isinstance(group, int) else group) for group in groups]
    named = [node for one in sets for node in one]
    for node in named:
        if node not in everybody:
            raise ValueError(f"there is no node {node}; the nodes are {', '.join(map(str, sorted(everybody)))}")
        if named.count(node) > 1:
            raise ValueError(f"node {node} is in two groups")
    if len(sets) == 1:
        sets.append(frozenset(everybody) - sets[0])
    if len(sets) < 2 or not all(sets):
        raise ValueError("a cut needs nodes on both sides")
    apart = {(a, b) for one, other in combinations(sets, 2) for a in one for b in other}
    return apart | {(b, a) for a, b in apart}


def cut_links(layout: Layout) -> set[Link]:
    """As the nodes' files say. A node that has not been told yet has not taken them."""
    found = set()
    for node in layout.nodes:
        try:
            lines = set(node.cut_links.read_text().split())
        except OSError:
            continue
        found |= {(node.node_id, peer.node_id) for peer in layout.nodes if lines & set(_addresses(peer))}
    return found


def described(links: Collection[Link]) -> list[str]:
    """A text for each pair: 1 | 2, and with an arrow where only one of them cannot call the other."""
    both = {(a, b) for a, b in links if (b, a) in links and a < b}
    one_way = {(a, b) for a, b in links if (b, a) not in links}
    return [f"{a} | {b}" for a, b in sorted(both)] + [f"{a} -> {b} (one way)" for a, b in sorted(one_way)]


def write_cut_links(layout: Layout, links: Collection[Link]) -> None:
    """In place of all that were cut."""
    for node in layout.nodes:
        peers = [peer for peer in layout.nodes if (node.node_id, peer.node_id) in links]
        if not peers:
            node.cut_links.unlink(missing_ok=True)
            continue
        temporary = node.cut_links.with_suffix(".tmp")
        temporary.write_text("".join(f"{address}\n" for peer in peers for address in _addresses(peer)))
        temporary.replace(node.cut_links)


def check_can_be_cut(nodes: Iterable[NodeFiles]) -> None:
    """Raises NoCuts for the nodes of a cluster that is older than this."""
    for node in nodes:
        if not any(line.startswith(f"{CUT_LINKS_KEY}=") for line in node.config.read_text().splitlines()):
            raise NoCuts(
                f"node {node.node_id} knows no {CUT_LINKS_KEY}: add {CUT_LINKS_KEY}={node.cut_links.name} to "
                f"{node.config} of each node, and restart it"
            )


def tell_cut_links(layout: Layout, running: Collection[tuple[NodeFiles, ProcessId]]) -> None:
    """Let these nodes read their files, and wait until they have. Raises TimedOut, NoCuts.

    A node that starts meanwhile reads its file by itself; it is told only once it can be: before that, the signal would
    end it.
    """
    links = cut_links(layout)
    wanted = {
        node.node_id: {
            text for peer in layout.nodes if (node.node_id, peer.node_id) in links for text in _addresses(peer)
        }
        for node, _ in running
    }
    left = {node.node_id: (node, process) for node, process in running}

    def taken() -> bool:
        for node_id, (node, process) in list(left.items()):
            if not process.alive:
                del left[node_id]  # it reads its file when it starts
                continue
            found = ask_cut_links(node.ports.admin, process.pid)
            if found is not None and set(found) == wanted[node_id]:
                del left[node_id]
            elif found is not None:
                process.send_alone(signal.SIGUSR1)
        return not left

    wait_until(taken, TAKEN_TIMEOUT_S, "the nodes to take the cut", lambda: f"nodes {sorted(left)} have not")


def _addresses(node: NodeFiles) -> tuple[str, ...]:
    """Of the listeners for nodes."""
    return (f"{HOST}:{node.ports.internal}", f"{HOST}:{node.ports.replication}")
