"""Run by test_spark_matrix.py in a process of its own: does the reads of a table with both formats in one session.

    python matrix_script.py JOB.json OUTCOMES.jsonl

The job has `servers`, `classpath` (Spark's Kafka connector) and `cells`: of each one name, is_stream, options (for both
formats), more (for ours alone) and, for a stream, runs_on. The outcomes are lines [name, theirs, ours], as they come.
An outcome is the error's text, or the schema, the rows, how tasks share them, and where batches of a stream end.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FORMATS = ("kafka", "quorumlog")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
SIDE_BY_SIDE = 2  # cells
STREAM_S = 60.0  # for the end of a stream
BATCH_S = 30.0  # for the first batch of a stream that goes on
TRIES, NOT_STARTED = (
    4,
    "Python worker failed to connect back",
)  # Spark waits ten seconds for one: too few where all is busy
SHOWN = 20_000  # characters of an error
LOOK_S = 0.1
Outcome = dict[str, Any]
Cell = Mapping[str, Any]


def main(job: Mapping[str, Any], outcomes: Path) -> None:
    from pyspark.sql import SparkSession

    from quorumlog.spark import quick_start

    quick_start()
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**SETTINGS, "spark.driver.extraClassPath": job["classpath"]}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(SIDE_BY_SIDE) as pool, outcomes.open("w") as file:

        def both(cell: Cell) -> list[Any]:
            return [cell["name"], *(outcome(spark, job, cell, kind, Path(folder)) for kind in FORMATS)]

        for line in pool.map(both, job["cells"]):
            print(json.dumps(line), file=file, flush=True)
    spark.stop()


def outcome(spark: Any, job: Mapping[str, Any], cell: Cell, kind: str, folder: Path) -> Outcome:
    began = time.monotonic()
    options = {"kafka.bootstrap.servers": job["servers"], **cell["options"]}
    if kind != "kafka":
        options |= cell["more"]
    given = {name: value for name, value in options.items() if value is not None}
    for number in range(TRIES):
        try:
            found = (stream if cell["is_stream"] else batch)(spark, cell, kind, given, folder / str(number))
        except Exception as error:  # whatever class: both sources raise many
            found = {"error": " ".join(str(error).split())[:SHOWN]}
        if NOT_STARTED not in found.get("error", ""):
            break
    return {**found, "took_s": round(time.monotonic() - began, 2)}


def batch(spark: Any, cell: Cell, kind: str, options: Mapping[str, str], folder: Path) -> Outcome:
    frame = spark.read.format(kind).options(**options).load()
    rows = frame.selectExpr(*plain(frame), "spark_partition_id() AS task").collect()
    tasks: dict[int, list[list[Any]]] = {}
    for row in rows:
        tasks.setdefault(row.task, []).append([row.topic, row.partition, row.offset])
    return {"schema": frame.schema.jsonValue(), "rows": encoded(rows), "tasks": sorted(map(sorted, tasks.values()))}


def stream(spark: Any, cell: Cell, kind: str, options: Mapping[str, str], folder: Path) -> Outcome:
    """One run of Trigger.AvailableNow; or until the first batch has ended, where it runs on."""
    frame = spark.readStream.format(kind).options(**options).load()
    name = f"rows_{abs(hash((cell['name'], kind, folder.name)))}"
    writer = frame.selectExpr(*plain(frame)).writeStream.format("memory").queryName(name)
    writer = writer.option("checkpointLocation", str(folder / name))
    if cell["runs_on"]:
        query = writer.trigger(processingTime="0 seconds").start()
        until_s = time.monotonic() + BATCH_S
        while query.isActive and not ends(query) and time.monotonic() < until_s:
            time.sleep(LOOK_S)
    else:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(STREAM_S)
    in_time, batches = bool(ends(query)) if cell["runs_on"] else not query.isActive, ends(query)
    query.stop()
    if not in_time:
        return {"error": "the stream did nothing in time" if cell["runs_on"] else "the stream did not end"}
    rows = spark.table(name).collect()
    spark.catalog.dropTempView(name)
    return {"schema": frame.schema.jsonValue(), "rows": encoded(rows), "batches": batches}


def ends(query: Any) -> list[dict[str, dict[str, int]]]:
    """Where each batch with rows ends."""
    texts = [said["sources"][0]["endOffset"] for said in query.recentProgress if said["numInputRows"]]
    found = [json.loads(text) if isinstance(text, str) else text for text in texts]
    return [position.get("o", position) for position in found]


def plain(frame: Any) -> list[str]:
    """Expressions of columns that JSON can hold."""
    own = {"key": "hex(key) AS key", "value": "hex(value) AS value", "timestamp": "unix_micros(timestamp) AS timestamp"}
    return [own.get(name, name) for name in frame.columns]


def encoded(rows: list[Any]) -> list[list[Any]]:
    """Sorted by topic, partition and offset."""
    found = []
    for row in rows:
        headers = row.headers if "headers" in row.__fields__ else None
        listed = (
            None if headers is None else [[one.key, None if one.value is None else one.value.hex()] for one in headers]
        )
        found.append(
            [row.topic, row.partition, row.offset, row.key, row.value, row.timestamp, row.timestampType, listed]
        )
    return sorted(found, key=lambda row: (row[0], row[1], row[2]))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
