"""A node's process that measures its turns: `python -m bench.nodes.measured_node [--complete] TURNS_FILE -c FILE`.

Without `--complete`, a node with the role of a broker is a *light* one: it registers, beats, follows the metadata and
works out what each image changes for it, all with the production classes, but it opens no logs. So one machine can hold
a cluster whose brokers have 100,000 replicas each.
"""

from __future__ import annotations

import sys

from quorumlog.slices import Sliced
from quorumlog_server.process.lean_start import load_no_more_than_needed

load_no_more_than_needed()

# ruff: noqa: E402  # imported after the settings above, as in quorumlog_server
from collections.abc import Sequence
from pathlib import Path
from selectors import BaseSelector

from bench.measuring.turns import MeasuredLoop, write_turns
from jepsen.light_broker import LightBroker
from quorumlog_broker.replicas.reconciler import changes_of
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_server.process import process
from quorumlog_server.process.node import Node

COMPLETE = "--complete"


class SearchingBroker(LightBroker):
    """It finds what each change gives to it."""

    def _find_changes(self, delta: Delta, image: Image) -> Sliced[None]:
        yield from changes_of(delta, image, self._node_id)


class LightNode(Node):
    broker_class = SearchingBroker


def main(arguments: Sequence[str]) -> int:
    is_complete = arguments[0] == COMPLETE
    turns_file, *rest = arguments[1:] if is_complete else arguments
    made: list[MeasuredLoop] = []

    def new_loop(selector: BaseSelector) -> MeasuredLoop:
        made.append(MeasuredLoop(selector))
        return made[-1]

    try:
        return process.main(rest, Node if is_complete else LightNode, new_loop)
    finally:
        for loop in made:
            write_turns(loop.turns, Path(turns_file))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
