"""What a local cluster's files say of voters whose addresses are in the metadata log, and were changed (decision 105).

With kraft.version 1 a node looks for the others at the addresses of the voter set in its own log, and only a leader can
write new ones. Where all have moved at once, each node's file says under which new address a voter is found that its
log still names at the old one: `controller.quorum.voters.moved`. When no log names an old address any more, the line
has done its work and is taken out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from quorumlog.settings.node import MOVED_VOTERS
from quorumlog.testing.layout import Layout
from quorumlog.testing.ports import HOST
from quorumlog_cli.local.whole_file import write_whole
from quorumlog_cli.terminal.errors import CliError, Exit

_LINE = re.compile(rf"^\s*{re.escape(MOVED_VOTERS)}\s*[=:].*\n?", re.MULTILINE)


def moved_line(layout: Layout, ports: Mapping[int, int]) -> str:
    """ports: the new port for nodes, by node id. "" if no node has voters in its log.

    The logs of all nodes are read, since one may lack what another has committed. Raises CliError if a voter is no
    node of the layout: its own file would have to be changed, too.
    """
    found = _listed(layout)
    if strangers := sorted({node_id for node_id, _ in found} - set(ports)):
        raise CliError(
            Exit.PRECONDITION,
            f"the quorum of the cluster in {layout.root} has voters that are not in it: {strangers}; they would look "
            "for the others at the old ports. Nothing was changed",
            "remove them first: quorumlog quorum remove-controller; or free the old ports, and omit --port",
        )
    entries = [
        f"{node_id}@{old}>{HOST}:{ports[node_id]}" for node_id, old in found if old != f"{HOST}:{ports[node_id]}"
    ]
    return f"{MOVED_VOTERS}={','.join(entries)}\n" if entries else ""


def with_line(text: str, line: str) -> str:
    """A node's file with this line in the place of the one that it may have."""
    rest = _LINE.sub("", text)
    return f"{rest}{'' if rest.endswith(chr(10)) or not line else chr(10)}{line}"


def drop_spent_lines(layout: Layout) -> None:
    """Where every log names the voters at their new addresses. All nodes are stopped, and all have the same ports."""
    texts = {node.config: node.config.read_text() for node in layout.nodes}
    if not any(map(_LINE.search, texts.values())):
        return
    if moved_line(layout, {node.node_id: node.ports.internal for node in layout.nodes}):
        return
    for path, text in texts.items():
        write_whole(path, with_line(text, ""))


def _listed(layout: Layout) -> list[tuple[int, str]]:
    """Each voter's id with each of its addresses, HOST:PORT, that the log of a node names."""
    from quorumlog_cli.offline.metadata_log import DIRECTORY
    from quorumlog_quorum.offline.metadata_survey import survey
    from quorumlog_quorum.raft.voters import set_of
    from quorumlog_storage.edge.disk import RealDisk

    found = set()
    for node in layout.nodes:
        log = node.data / DIRECTORY  # which `up` has nowhere else; there is none before the first start
        voters = survey(RealDisk(), str(log)).voters if log.is_dir() else None
        for voter in () if voters is None else set_of(voters).voters:
            found.add((voter.node_id, f"{voter.endpoint.host}:{voter.endpoint.port}"))
    return sorted(found)
