"""Runs one real node whose disk can be struck: `python -P -m jepsen.live.struck_node FOLDER -c FILE`.

Only for machines on which neither strace nor a file system of its own can strike a disk. The node is the production
one; this launcher puts its own Disk (struck_disk.py) around the production Disk before the node is built, and
production code knows nothing of it. A thread reads the orders in FOLDER and writes how many calls were struck.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from quorumlog_server.process.lean_start import load_no_more_than_needed

load_no_more_than_needed()

import quorumlog_server.edge.real_edges  # noqa: E402  # imported after the settings above
from jepsen.live.disks.struck_disk import Strikes, StruckDisk  # noqa: E402
from quorumlog_server.process.process import main  # noqa: E402


def run(arguments: list[str]) -> int:
    """arguments: the folder of the orders, then the node's own arguments. Returns the node's exit code."""
    strikes = Strikes(Path(arguments[0]))
    StruckDisk.strikes = strikes
    vars(quorumlog_server.edge.real_edges)["RealDisk"] = StruckDisk  # the node is built with it
    threading.Thread(target=strikes.follow, name="orders", daemon=True).start()
    return main(arguments[1:])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
