"""Run by test_spark_standalone.py in a process of its own: reads, writes and loads a topic, and prints what it has
found."""

from __future__ import annotations

import json
import sys
from typing import Any

TASKS = 16  # enough for both workers


def main(servers: str, topic: str, master: str, folder: str, name: str) -> None:
    """Prints one line of JSON: the rows, and of each worker its folder, its user, and the place of its package. name:
    of what is written."""
    from once_places import write_twice
    from pyspark.sql import SparkSession

    from quorumlog.spark.load.job import Request, in_spark, run_load
    from quorumlog.spark.load.store import DirectoryStore

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "768m")
    spark = (
        builder.config("spark.sql.shuffle.partitions", "2")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1")
        .getOrCreate()
    )

    def place(_: int) -> tuple[Any, ...]:
        import os
        import time

        import quorumlog

        time.sleep(0.2)  # so that one worker does not take all
        return os.path.basename(os.getcwd()), os.getuid(), str(quorumlog.__file__), "HOME" in os.environ

    frame = spark.read.format("quorumlog").option("bootstrap.servers", servers).option("subscribe", topic).load()
    rows = sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())
    run_load(
        Request(topics=(topic,), client={"bootstrap_servers": servers}, rows_per_file=1_000),
        DirectoryStore(folder),
        in_spark(spark),
    )
    write_twice(spark, servers, topic, name)
    places = sorted(set(spark.sparkContext.parallelize(range(TASKS), TASKS).map(place).collect()))
    print("\n" + json.dumps({"rows": rows, "places": places}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
