"""Starts Spark's Python processes sooner, if a session asks for it: spark.python.daemon.module=quorumlog.spark.daemon.

For the first read of a session, Spark starts four Python processes one after the other: to find the format, to ask for
its schema, to plan and to read. Each imports pyspark, and each is the parent of the processes that do the work. Spark
puts pyspark's zip archive first on their path. An archive holds no bytecode, so each of them compiles pyspark again;
this module takes the installed pyspark of the same Spark instead. It also imports what its children will need, so that
they do not import it after every fork. Then pyspark's own daemon runs.

Without this setting everything works in the same way, only later.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Mapping, Sequence

ARCHIVE = os.path.join("pyspark", "python", "lib", "pyspark.zip")  # as pip installs it
PLANNER = "pyspark.sql.worker."
NEEDED: Mapping[str, Sequence[str]] = {
    f"{PLANNER}lookup_data_sources": ["source"],
    f"{PLANNER}create_data_source": ["source", "options", "schema"],
    f"{PLANNER}plan_data_source_read": ["source", "cluster", "planning", "schema"],
    f"{PLANNER}data_source_pushdown_filters": ["source", "pushing", "cluster", "planning", "schema"],
    "pyspark.worker": ["source", "reading", "cluster", "columns"],
}


def main(worker: str) -> None:
    """worker: the module of pyspark that the children run, as Spark names it."""
    sys.path[:] = without_archives(sys.path)
    for name in NEEDED.get(worker, ()):
        importlib.import_module(f"quorumlog.spark.{name}")
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)


def without_archives(path: Sequence[str]) -> list[str]:
    """Leaves out each pyspark.zip whose pyspark is installed, as a folder, in a place that is on the path as well."""
    places = {os.path.realpath(entry) for entry in path if entry}
    return [entry for entry in path if not _is_archive_of(entry, places)]


def _is_archive_of(entry: str, places: set[str]) -> bool:
    real = os.path.realpath(entry)
    return real.endswith(os.sep + ARCHIVE) and real.removesuffix(os.sep + ARCHIVE) in places


if __name__ == "__main__":
    main(sys.argv[1])
