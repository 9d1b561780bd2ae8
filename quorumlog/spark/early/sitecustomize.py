"""Python runs this first in each process whose PYTHONPATH names its folder (quorumlog/spark/python_path.py).

In a process of Spark, which has pyspark's archive on its path, the connector's preparations follow; any other process
is left alone. Then the `sitecustomize` that would have run without this one has its turn.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

HERE = os.path.realpath(os.path.dirname(__file__))
DAEMON = ["-m", "pyspark.daemon"]


def prepare() -> None:
    if not any(entry.endswith("pyspark.zip") for entry in sys.path):
        return
    try:
        from quorumlog.spark import daemon
    except ImportError:
        return  # a Python without the connector
    if sys.orig_argv[1:3] == DAEMON and len(sys.orig_argv) == 4:
        daemon.prepare(sys.orig_argv[3])
    else:
        daemon.leave_archives_out()


def run_next() -> None:
    spec = PathFinder.find_spec(__name__, [entry for entry in sys.path if os.path.realpath(entry) != HERE])
    if spec is not None and spec.loader is not None:
        module = sys.modules[__name__] = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    prepare()
    run_next()
