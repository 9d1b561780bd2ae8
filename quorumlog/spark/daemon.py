"""Prepares Spark's Python processes: they start sooner, and each task does less.

For the first read of a session, Spark starts four Python processes one after the other: to find the format, to ask for
its schema, to plan and to read. Each imports pyspark, and each is the parent of the processes that do the work. Spark
puts pyspark's zip archive first on their path. An archive holds no bytecode, so each of them compiles pyspark again;
here the installed pyspark of the same Spark is taken instead. What the children will need is imported before they are
forked, too.

A child does two more things for each task: it looks for garbage among all objects, and it reads anew the list of files
of each archive on its path. One of these is Spark's own jar, with 5,000 files and none of Python. Both together took
0.2 s of processor time, as much as 200,000 rows. So what is loaded is left out of the search, and the jar of the path.

All four are prepared by `quick_start`. Where an environment variable cannot be set, the setting
spark.python.daemon.module=quorumlog.spark.daemon prepares the last of them. Without either all works in the same way,
only later.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import runpy
import sys
from collections.abc import Mapping, Sequence

# Of an installed pyspark: its modules once more, and Spark's own jar, which once held them.
ARCHIVES = re.compile(r"pyspark/(python/lib/pyspark\.zip|jars/spark-core_[^/]+\.jar)".replace("/", re.escape(os.sep)))
PLANNER = "pyspark.sql.worker."
NEEDED: Mapping[str, Sequence[str]] = {
    f"{PLANNER}lookup_data_sources": ["format.source"],
    f"{PLANNER}create_data_source": ["format.source", "read.options", "read.schema"],
    f"{PLANNER}plan_data_source_read": ["format.source", "read.cluster", "read.planning", "read.schema"],
    f"{PLANNER}data_source_pushdown_filters": ["format.pushing", "read.cluster", "read.planning", "read.schema"],
    "pyspark.worker": ["format.source", "read.reading", "read.cluster", "read.columns"],
}


def prepare(worker: str) -> None:
    """worker: the module of pyspark that the children run, as Spark names it."""
    leave_archives_out()
    for name in (worker, *(f"quorumlog.spark.{one}" for one in NEEDED.get(worker, ()))):
        importlib.import_module(name)
    gc.freeze()


def main(worker: str) -> None:
    prepare(worker)
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)


def leave_archives_out() -> None:
    """From now on no import looks into them."""
    kept = without_archives(sys.path)
    left_out = set(sys.path).difference(kept)
    sys.path[:] = kept
    for place in list(sys.path_importer_cache):
        if any(place == archive or place.startswith(archive + os.sep) for archive in left_out):
            del sys.path_importer_cache[place]


def without_archives(path: Sequence[str]) -> list[str]:
    """Leaves out pyspark's archives, if it is installed as a folder in a place that is on the path as well."""
    places = {os.path.realpath(entry) for entry in path if entry}
    return [entry for entry in path if not _is_archive_of(os.path.realpath(entry), places)]


def _is_archive_of(real: str, places: set[str]) -> bool:
    return any(
        real.startswith(place + os.sep) and ARCHIVES.fullmatch(real.removeprefix(place + os.sep)) for place in places
    )


if __name__ == "__main__":
    main(sys.argv[1])
