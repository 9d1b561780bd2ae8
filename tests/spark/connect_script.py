"""Run by test_spark_connect.py in a process of its own: a process has either a classic session or one of Connect."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(servers: str, topic: str, folder: Path) -> None:
    """Prints one line of JSON: what a batch and a stream over Spark Connect have read. They are written into the topics
    `copy-batch` and `copy-stream`."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    options = {"bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    batch = spark.read.format("quorumlog").options(**options).load()
    rows = sorted((row.partition, row.offset, bytes(row.value).decode()) for row in batch.collect())
    stream = spark.readStream.format("quorumlog").options(**options).load()
    writer = stream.selectExpr("partition", "offset", "CAST(value AS STRING) AS value").writeStream.format("parquet")
    query = (
        writer.option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120), "a run of AvailableNow ends"
    streamed = sorted(
        (row.partition, row.offset, row.value) for row in spark.read.parquet(str(folder / "rows")).collect()
    )
    sink = {"bootstrap.servers": servers, "delivery": "at-least-once"}
    batch.select("value").write.format("quorumlog").options(**sink, topic="copy-batch").mode("append").save()
    copy = stream.select("value").writeStream.format("quorumlog").options(**sink, topic="copy-stream")
    copied = copy.option("checkpointLocation", str(folder / "copy")).trigger(availableNow=True).start()
    assert copied.awaitTermination(120), "a run of AvailableNow ends"
    print(json.dumps({"session": type(spark).__module__, "batch": rows, "stream": streamed}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
