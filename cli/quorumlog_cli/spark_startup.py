"""What `quorumlog spark shell` adds to pyspark's shell, which runs this file once `spark` is there."""

from __future__ import annotations

import json
import os
from typing import Any

SERVERS = "QUORUMLOG_SPARK_SERVERS"  # environment variable
OPTIONS = "QUORUMLOG_SPARK_OPTIONS"  # the same for options of the format, in JSON


def topic(*names: str, **options: Any) -> Any:
    """A DataFrame of topics: topic("orders"), topic("a", "b", includeHeaders=True). docs/spark.md has the options."""
    from pyspark.sql import SparkSession

    reader = SparkSession.builder.getOrCreate().read.format("quorumlog")
    return reader.options(**{**json.loads(os.environ[OPTIONS]), "subscribe": ",".join(names), **options}).load()


if __name__ == "__main__":  # and not where the command asks for its place
    print(f'topic("NAME") is a DataFrame of a topic of {os.environ[SERVERS]}.')
