"""One session of Spark in a process of its own: does the same work on a topic several times, prints the times as JSON.

    python spark_session.py '{"work": "read", "kind": "kafka", "servers": ..., "topic": ..., "runs": ..., ...}'

Run by a Python that has pyspark, and this package where the work is ours. The argument is a `Job` of jobs.py.
The last line of the output is a `Session` of rows.py. Times are in seconds; that of a run counts from its first
call on, in a session that is ready.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

START_S = time.perf_counter()  # before pyspark is imported
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
QUERY = ("count(*)", "sum(length(value))", "sum(crc32(value))")  # touches every byte of every value
STEADY_S = 20.0  # how long a stream of small batches runs
LOOK_S = 0.2
Answer = list[int]
Job = Mapping[str, Any]


def main(job: Job) -> None:
    from pyspark import __version__
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    classpath = {"spark.driver.extraClassPath": job["classpath"]} if job["classpath"] else {}
    for name, value in {**SETTINGS, **classpath}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    session_s = time.perf_counter() - START_S
    reads_s, used_s, answers = [], [], []
    for taken_s, took_s, answer in WORKS[job["work"]](spark, job):
        reads_s.append(taken_s)
        used_s.append(took_s)
        answers.append(answer)
    found = {"version": __version__, "session_s": session_s, "reads_s": reads_s, "used_s": used_s, "answers": answers}
    print("\n" + json.dumps(found), flush=True)
    spark.stop()


def again(
    once: Callable[[Any, Job, str], Callable[[], Answer]],
) -> Callable[[Any, Job], Iterator[tuple[float, float, Answer]]]:
    """Seconds, processor time and answer of each run. `once` does the work, and returns what finds out its answer."""

    def runs(spark: Any, job: Job) -> Iterator[tuple[float, float, Answer]]:
        for number in range(job["runs"]):
            used_before_s, start_s = _used_s(), time.perf_counter()
            find_answer = once(spark, job, os.path.join(job["folder"], str(number)))
            taken_s, used_s = time.perf_counter() - start_s, _used_s() - used_before_s
            yield taken_s, used_s, find_answer()

    return runs


def read(spark: Any, job: Job, folder: str) -> Callable[[], Answer]:
    answer = list(_batch(spark, job).selectExpr(*QUERY).collect()[0])
    return lambda: answer


def stream(spark: Any, job: Job, folder: str) -> Callable[[], Answer]:
    """All that the topic has, counted by partition, in one run of Trigger.AvailableNow."""
    counts = _stream(spark, job).option("startingOffsets", "earliest").load().groupBy("partition").count()
    writer = counts.writeStream.format("memory").queryName("counts").outputMode("complete")
    writer.option("checkpointLocation", folder).trigger(availableNow=True).start().awaitTermination()
    return lambda: [sum(row["count"] for row in spark.table("counts").collect())]


def load(spark: Any, job: Job, folder: str) -> Callable[[], Answer]:
    """The topic into Parquet files: by our load, or by Spark's source and sink."""
    if job["kind"] == "kafka":
        _batch(spark, job).write.parquet(folder)
    else:
        from quorumlog.spark.load.job import Request, in_spark, run_load
        from quorumlog.spark.load.store import open_store

        wanted = Request(topics=(job["topic"],), client={"bootstrap_servers": job["servers"]})
        run_load(wanted, open_store(folder), in_spark(spark))

    def rows() -> Answer:
        from pyarrow.dataset import dataset

        return [dataset(folder, format="parquet").count_rows()]

    return rows


def steady(spark: Any, job: Job) -> Iterator[tuple[float, float, Answer]]:
    """Each batch with rows of a stream that begins one when the one before ends: its duration, and how many rows."""
    frame = _stream(spark, job).option("startingOffsets", "earliest").load()
    query = frame.writeStream.format("noop").option("checkpointLocation", job["folder"]).start()
    until_s = None
    for batches in _looks(query, least_rows=1):
        if until_s is None and batches:
            until_s = time.perf_counter() + STEADY_S
        if until_s is not None and time.perf_counter() >= until_s:
            break
    query.stop()
    return iter(batches.values())


def sink(spark: Any, job: Job) -> Iterator[tuple[float, float, Answer]]:
    """Rows of Parquet files into the topic, as a batch. The bench counts them there."""

    def once(spark: Any, job: Job, folder: str) -> Callable[[], Answer]:
        rows.write.format(job["kind"]).options(**_sink_options(job)).mode("append").save()
        return lambda: [job["rows"]]

    rows = spark.read.parquet(_rows_to_write(spark, job))
    return again(once)(spark, job)


def sink_stream(spark: Any, job: Job) -> Iterator[tuple[float, float, Answer]]:
    """The same as a stream, in one run of Trigger.AvailableNow."""

    def once(spark: Any, job: Job, folder: str) -> Callable[[], Answer]:
        writer = rows.writeStream.format(job["kind"]).options(**_sink_options(job))
        writer.option("checkpointLocation", folder).trigger(availableNow=True).start().awaitTermination()
        return lambda: [job["rows"]]

    files = _rows_to_write(spark, job)
    rows = spark.readStream.schema("value binary").parquet(files)
    return again(once)(spark, job)


def commits(spark: Any, job: Job) -> Iterator[tuple[float, float, Answer]]:
    """A stream of batches, each of `rows` rows by eight tasks: its duration, and how many rows. spark_timed.py, beside
    our packages, times the commits."""
    spark.dataSource.register(importlib.import_module("spark_timed").TimedSource)
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", job["rows"]).option("numPartitions", 8)
    frame = source.load().selectExpr("cast(value as string) as value", "cast(value % 6 as int) as partition")
    writer = frame.writeStream.format("timed-quorumlog").options(**_sink_options(job))
    query = writer.option("checkpointLocation", os.path.join(job["folder"], "checkpoint")).start()
    for batches in _looks(query):
        if len(batches) >= job["runs"]:
            break
    query.stop()
    return iter(batches.values())


def _looks(query: Any, least_rows: int = 0) -> Iterator[dict[int, tuple[float, float, Answer]]]:
    """The batches of a stream so far, of at least so many rows, by their number: after each look at its progress."""
    batches: dict[int, tuple[float, float, Answer]] = {}
    while True:
        time.sleep(LOOK_S)  # fewer batches than recentProgress keeps
        for said in query.recentProgress:
            if said["numInputRows"] >= least_rows:
                batches[said["batchId"]] = (said["durationMs"]["triggerExecution"] / 1000, 0.0, [said["numInputRows"]])
        if query.exception() is not None:
            raise SystemExit(f"the stream failed: {query.exception()}")
        yield batches


def _rows_to_write(spark: Any, job: Job) -> str:
    """A folder of Parquet files with rows of 100 bytes."""
    folder = os.path.join(job["folder"], "rows")
    digits = "sha2(cast(id as string), 256)"
    value = f"cast(concat({digits}, substring({digits}, 1, 36)) as binary) as value"
    spark.range(0, job["rows"], 1, 4).selectExpr(value).write.parquet(folder)
    return folder


def _sink_options(job: Job) -> dict[str, str]:
    return {"kafka.bootstrap.servers": job["servers"], "topic": job["topic"], **job["options"]}


def _batch(spark: Any, job: Job) -> Any:
    return spark.read.format(job["kind"]).options(**_options(job)).load()


def _stream(spark: Any, job: Job) -> Any:
    return spark.readStream.format(job["kind"]).options(**_options(job))


def _options(job: Job) -> dict[str, str]:
    return {"kafka.bootstrap.servers": job["servers"], "subscribe": job["topic"], **job["options"]}


def _used_s() -> float:
    """Processor time of all processes below this one that are alive: Java and Spark's Python processes."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parents[int(name)] = int(fields[1])
            used[int(name)] = sum(map(int, fields[11:15]))  # user and system, of it and of its children, proc(5)
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used[pid] for pid in below if pid in used and pid != os.getpid()) / os.sysconf("SC_CLK_TCK")


WORKS: Mapping[str, Callable[[Any, Job], Iterator[tuple[float, float, Answer]]]] = {
    "read": again(read), "stream": again(stream), "load": again(load), "steady": steady, "sink": sink,
    "sink_stream": sink_stream, "commits": commits,
}  # fmt: skip

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
