"""Run by test_spark_kills.py in a process of its own, which it kills: a streaming query whose batches become files."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

STAYS_S = 600.0  # inside a batch, until the process is killed


def main(folder: Path, options: dict[str, str], waits_in: int, runs_on: bool) -> None:
    """folder: of the checkpoint, of a file for each batch, and of the marks `in-N` and `stop`.

    waits_in: the batch in which it waits to be killed, before its file is written; -1: in none. runs_on: until there is
    a file `stop`; else one run of Trigger.AvailableNow.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()

    def take(rows: Any, batch: int) -> None:
        found = sorted((row.topic, row.partition, row.offset) for row in rows.collect())
        if batch == waits_in:
            (folder / f"in-{batch}").touch()
            time.sleep(STAYS_S)
        unfinished = folder / f"{batch}.tmp"
        unfinished.write_text(json.dumps(found))
        os.replace(unfinished, folder / f"batch-{batch}.json")

    stream = spark.readStream.format("quorumlog").options(**options).load()
    writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(folder / "checkpoint"))
    if not runs_on:
        writer.trigger(availableNow=True).start().awaitTermination()
        return
    query = writer.trigger(processingTime="0 seconds").start()
    while not (folder / "stop").exists():
        query.awaitTermination(0.1)
    query.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "on")
