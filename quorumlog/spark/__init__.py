"""The Spark connector: `spark.read.format("quorumlog")`, one task per partition, Arrow all the way.

Spark finds the format by itself (`pyspark_quorumlog.py`). The way of the data, file by file: options, places (offsets
as text), planning (pure), columns, reading (in the worker), source (what Spark calls). `java` finds a Java for Spark.
Nothing of pyspark is imported until `DefaultSource` is used.

Spark's own Python processes must see the package: outside an activated environment, set PYSPARK_PYTHON to
`sys.executable` before the session starts, or Spark takes the `python3` of the PATH, which knows no format `quorumlog`.
In a script that also uses a client of its own, start the session first: Spark forks to start Java, and gRPC's threads
may end the child before it becomes Java.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorumlog.spark.source import DefaultSource

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> Any:
    if name != "DefaultSource":
        raise AttributeError(f"module 'quorumlog.spark' has no attribute {name!r}")
    from quorumlog.spark.source import DefaultSource

    return DefaultSource
