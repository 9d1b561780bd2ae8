"""Real applications, unmodified, against `quorumlog up` with its defaults.

    ./dev applications [NAME ...] [--nodes 3] [--cache DIR] [--keep]

Each runs alone, on a cluster of its own, with its packages in an environment of its own (downloaded once, below
--cache). One whose packages cannot be had here is skipped, with the reason. Exits with 1 if one failed, otherwise 0.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from applications.application import Application, Stage
from applications.bytewax_flow import BYTEWAX
from applications.cluster import Cluster
from applications.connect import CONNECT, CONNECT_EXACTLY_ONCE
from applications.environments import CACHE, Unavailable
from applications.faust_app import FAUST
from applications.group_tools import GROUP_TOOLS
from applications.members import ALL as MEMBERS
from applications.mirror_maker import MIRROR_MAKER_2
from applications.running import Failed
from applications.spark import SPARK
from applications.streams import STREAMS

APPLICATIONS = {
    one.name: one
    for one in (*MEMBERS, GROUP_TOOLS, FAUST, BYTEWAX, CONNECT, CONNECT_EXACTLY_ONCE, MIRROR_MAKER_2, STREAMS, SPARK)
}
NODES = 3


def main(argv: list[str]) -> int:
    options = _parse(argv)
    results = [_tell(APPLICATIONS[name], options) for name in options.names or APPLICATIONS]
    print(", ".join(f"{results.count(word)} {word}" for word in ("passed", "failed", "skipped")))
    return 1 if "failed" in results else 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="applications", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(APPLICATIONS)}; default: all")
    parser.add_argument("--nodes", type=int, default=NODES, help=f"of each cluster; default {NODES}")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where packages are kept")
    parser.add_argument("--keep", action="store_true", help="keep the files and logs also of what passed")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in APPLICATIONS]
    if unknown:
        parser.error(f"no such application: {', '.join(unknown)}; there are {', '.join(APPLICATIONS)}")
    return options


def _tell(application: Application, options: argparse.Namespace) -> str:
    """Run one, with a line before and one after: "passed", "failed" or "skipped"."""
    print(f"{application.name}: {application.about} ...", flush=True)
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"quorumlog-{application.name}-"))
    try:
        run(application, folder, options.cache, options.nodes)
    except Unavailable as reason:
        result, more = "skipped", f": {reason}"
    except Failed as failure:
        result, more = "failed", f": {failure}\nits files are in {folder}"
    except Exception:
        result, more = "failed", f":\n{traceback.format_exc()}its files are in {folder}"
    else:
        result, more = "passed", f" in {time.monotonic() - begun:.0f} s"
    if result != "failed" and not options.keep:
        shutil.rmtree(folder)
    print(f"{application.name}: {result}{more}", flush=True)
    return result


def run(application: Application, folder: Path, cache: Path, nodes: int) -> None:
    """On a fresh cluster in `folder`. Raises Unavailable, Failed, AssertionError."""
    application.prepare(cache)
    with Cluster(folder, nodes) as cluster:
        application.run(Stage(cluster, cache, folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
