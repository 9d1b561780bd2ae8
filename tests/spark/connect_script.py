"""Run by test_spark_connect.py in a process of its own: a process has either a classic session or one of Connect."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

QUERY_S = 240.0


def main(servers: str, topic: str, folder: Path) -> None:
    """Prints one line of JSON: what a batch and a stream over Spark Connect have read. They are written into the topics
    `copy-batch` and `copy-stream`, and exactly once into `once-batch` and `once-stream`, each of these twice over."""
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
    assert query.awaitTermination(QUERY_S), "a run of AvailableNow ends"
    streamed = sorted(
        (row.partition, row.offset, row.value) for row in spark.read.parquet(str(folder / "rows")).collect()
    )
    sink = {"bootstrap.servers": servers, "delivery": "at-least-once"}
    batch.select("value").write.format("quorumlog").options(**sink, topic="copy-batch").mode("append").save()
    copy = stream.select("value").writeStream.format("quorumlog").options(**sink, topic="copy-stream")
    copied = copy.option("checkpointLocation", str(folder / "copy")).trigger(availableNow=True).start()
    assert copied.awaitTermination(QUERY_S), "a run of AvailableNow ends"
    write_once(batch.select("value"), stream.select("value"), servers, folder / "once")
    print(json.dumps({"session": type(spark).__module__, "batch": rows, "stream": streamed}))
    spark.stop()


def write_once(batch: Any, stream: Any, servers: str, folder: Path) -> None:
    """The second time adds nothing: the batch has a name, and the stream's last batch was decided."""
    writer = stream.writeStream.format("quorumlog").option("bootstrap.servers", servers)
    named = {"writeId": "connect", "writeVersion": "3"}
    for _ in range(2):
        once = batch.write.format("quorumlog").option("bootstrap.servers", servers)
        once.options(**named, topic="once-batch").mode("append").save()
        query = writer.options(topic="once-stream", checkpointLocation=str(folder)).trigger(availableNow=True).start()
        assert query.awaitTermination(QUERY_S), "a run of AvailableNow ends"
        for name in ("0", ".0.crc"):  # as if the server had died before it noted that the batch is done
            (folder / "commits" / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
