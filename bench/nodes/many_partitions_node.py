"""A complete node that measures its turns and counts its syncs: `... TURNS_FILE LONG_TURNS_FILE SYNCS_FILE -c FILE`.

The files are written when it stops; a killed node leaves none.
"""

from __future__ import annotations

import sys

from quorumlog_server.process.lean_start import load_no_more_than_needed

load_no_more_than_needed()

# ruff: noqa: E402  # imported after the settings above, as in quorumlog_server
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from selectors import BaseSelector

from bench.measuring.counted_disk import CountedDisk, Counts, write_counts
from bench.measuring.turns import LongTurns, MeasuredLoop, write_long_turns, write_turns
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.edge.edges import Edges
from quorumlog_server.process import process
from quorumlog_server.process.node import Node


def main(arguments: Sequence[str]) -> int:
    turns_file, long_file, syncs_file, *rest = arguments
    made: list[MeasuredLoop] = []
    counts: Counts = Counter()
    long = LongTurns()

    def new_loop(selector: BaseSelector) -> MeasuredLoop:
        made.append(MeasuredLoop(selector))
        made[-1].long = long
        return made[-1]

    def build(config: NodeConfig, edges: Edges) -> Node:
        return Node(config, replace(edges, disk=CountedDisk(edges.disk, counts)))

    try:
        return process.main(rest, build, new_loop)
    finally:
        for loop in made:
            write_turns(loop.turns, Path(turns_file))
        write_long_turns(long, Path(long_file))
        write_counts(counts, Path(syncs_file))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
