"""The Spark connector: `spark.read` and `spark.readStream` with `format("quorumlog")`, Arrow all the way.

Spark finds the format by itself (`pyspark_quorumlog.py`). Rooms: `format` has the classes that Spark calls. `read` goes
the way of the data: options, places (offsets as text), planning (pure), cluster or files, columns, reading (in the
worker), and filters. `stream` says where a stream is and what a batch takes. `write` sends rows, exactly once by joint
transactions or, on an Apache Kafka (`write.kafka`), by decisions in a topic. `load` writes topics into Parquet and
tables, `mirror` copies clusters, `session` is what outlives a task. `track` shows how far queries are; with
`quick_start` Spark's Python processes start sooner (python_path, early, daemon). pyspark is imported only when a name
of this module is used that needs it.

Spark's own Python processes must be able to import the package. Outside an activated environment, set PYSPARK_PYTHON to
`sys.executable` before the session starts. Otherwise Spark uses the `python3` of the PATH, which has no format
`quorumlog`. If a script also uses a client, start the session first: Spark forks to start Java, and gRPC's threads may
kill the child before it becomes Java.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorumlog.spark.format.source import DefaultSource
    from quorumlog.spark.python_path import quick_start
    from quorumlog.spark.stream.group_listener import track

__all__ = ["DefaultSource", "quick_start", "track"]

_HOMES = {"DefaultSource": "format.source", "quick_start": "python_path", "track": "stream.group_listener"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'quorumlog.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(f"quorumlog.spark.{_HOMES[name]}"), name)
