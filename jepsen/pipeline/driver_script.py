"""The driver of the stream, in a process of its own: python -m jepsen.pipeline.driver_script FOLDER JOB

JOB is JSON: servers, from, to, shape, most (records of a batch). The query is started again whenever it has ended. It
is stopped when FOLDER has the order `stop`, and waits between `pause` and `resume`. With the order `finish` the driver
writes what is left and ends.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jepsen.pipeline.history import Shape
from jepsen.pipeline.places import CHECKPOINT, FINISH, PAUSE, POLL_S, RESUME, STOP, Folder
from jepsen.pipeline.struck_source import FOLDER, FORMAT, StruckSource

MASTER = "local-cluster[2,1,1024]"
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "768m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.minBatchesToRetain": "1000000",  # the run reads all plans at its end
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.sql.codegen.wholeStage": "false",  # a driver lives for some batches, and its compilers would cost more
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
}
OUTPUT = {Shape.MAP: "append", Shape.AGGREGATE: "complete"}  # Spark has no update mode for sinks in Python
PATIENCE_S = 0.5  # before a query that has failed is started again


class Driver:
    def __init__(self, spark: Any, folder: Folder, job: Mapping[str, Any]) -> None:
        self._spark, self._folder, self._job = spark, folder, job

    def run(self) -> None:
        while not self._folder.take(FINISH):
            if self._folder.take(STOP):
                self._folder.tell({"event": "stopped", "ran": False})  # it has ended by itself
            if self._folder.take(PAUSE):
                self._folder.tell({"event": "paused"})
                while not self._folder.take(RESUME):
                    time.sleep(POLL_S)  # the order is a file
            self._run_once()
        self._finish()
        self._folder.tell({"event": "finished"})

    def _run_once(self) -> None:
        """One query, until it fails, is stopped, or everything ends."""
        query = self._start({"processingTime": "0 seconds"})
        while query.isActive:
            if self._folder.has(FINISH) or self._folder.has(PAUSE):
                query.stop()
            elif self._folder.take(STOP):
                began = time.monotonic()
                query.stop()
                self._folder.tell({"event": "stopped", "ran": True, "took_s": time.monotonic() - began})
            time.sleep(POLL_S)  # orders are files
        self._tell_failure(query)

    def _finish(self) -> None:
        """Until a run of what is left ends well."""
        while True:
            query = self._start({"availableNow": True})
            try:
                query.awaitTermination()
                return
            except Exception:  # whatever Spark wraps the death of a node or a worker in: it is told, and tried again
                self._tell_failure(query)

    def _tell_failure(self, query: Any) -> None:
        failure = query.exception()
        if failure is not None:
            self._folder.tell({"event": "failed", "why": str(failure)[:4_000]})
            time.sleep(PATIENCE_S)

    def _start(self, trigger: Mapping[str, Any]) -> Any:
        job, path = self._job, self._folder.path
        given = {"bootstrap.servers": job["servers"]}
        reader = self._spark.readStream.format("quorumlog").options(**given).option("startingOffsets", "earliest")
        frame = reader.option("subscribe", job["from"]).option("maxOffsetsPerTrigger", str(job["most"])).load()
        shape = Shape(job["shape"])
        writer = shaped(frame, shape).writeStream.format(FORMAT).outputMode(OUTPUT[shape])
        writer = writer.options(**given, topic=job["to"]).option(FOLDER, str(path))
        writer = writer.option("checkpointLocation", str(path / CHECKPOINT)).trigger(**trigger)
        query = writer.start()
        self._folder.tell({"event": "started", "run": str(query.runId), "query": str(query.id)})
        return query


def shaped(frame: Any, shape: Shape) -> Any:
    """See jepsen.pipeline.history: what a row says of the batch that it is of."""
    if shape is Shape.MAP:
        return frame.selectExpr("key", "concat(partition, '/', offset) as value")
    return frame.groupBy("key").count().selectExpr("key", "cast(count as string) as value")


def main(folder: Path, job: Mapping[str, Any]) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER)
    for name, value in {**SETTINGS, "spark.executorEnv.PYTHONPATH": job["path"]}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    spark.dataSource.register(StruckSource)
    Folder(folder).tell({"event": "ready"})
    Driver(spark, Folder(folder), job).run()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
