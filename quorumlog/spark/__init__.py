"""The Spark connector: `spark.read` and `spark.readStream` with `format("quorumlog")`, Arrow all the way.

Spark finds the format by itself (`pyspark_quorumlog.py`). Modules in the order of the data: options, places (offsets as
text), offset_queries, planning and splitting (pure), columns, reading (in the worker), source (called by Spark), with
filters and pushing for Spark's filters. Of streams: stream_offset (what a checkpoint holds), admission and
stream_planning (pure), streaming, pins, stream_source (called by Spark). Of `table`: table_options, tables. The folder
`load` has the batch load into Parquet. `java` finds a Java for Spark. `track` shows how far queries are; with
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
    from quorumlog.spark.group_listener import track
    from quorumlog.spark.python_path import quick_start
    from quorumlog.spark.source import DefaultSource

__all__ = ["DefaultSource", "quick_start", "track"]

_HOMES = {"DefaultSource": "source", "quick_start": "python_path", "track": "group_listener"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'quorumlog.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(f"quorumlog.spark.{_HOMES[name]}"), name)
