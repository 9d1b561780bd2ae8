"""Run by test_spark_once_kills.py in a process of its own: a stream that is written exactly once, and held at a place.

python once_script.py FOLDER '{"servers": ..., "from": TOPIC, "to": TOPIC}' PLACE

PLACE: where it waits to be killed, unless FOLDER has a file of that name: it makes the file first.
    sent    a task has sent its rows and has not returned
    before  the driver is about to decide
    after   the batch is decided, and Spark has not heard so
    raises  as `after`, but the commit raises
    writes  all tasks have sent their rows and have not returned; the script stops the query, and Spark kills them
    stops   as `before`, for a while; the script stops the query meanwhile
    none    nowhere
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from quorumlog.spark.format.source import DefaultSource

STAYS_S = 600.0  # until the process is killed
STOPPED_S = 5.0  # of a commit that is about to decide
BASE: Any = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)


class HeldSource(DefaultSource):
    """The format `quorumlog` with a writer that is held."""

    @classmethod
    def name(cls) -> str:
        return "held"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        given = dict(self.options)
        place, folder = given.pop("place"), given.pop("folder")
        writer: DataSourceStreamWriter = HeldWriter(DefaultSource(given).streamWriter(schema, overwrite), place, folder)
        return writer


class HeldWriter(BASE):  # type: ignore[misc]
    def __init__(self, real: Any, place: str, folder: str) -> None:
        self._real, self._place, self._folder = real, place, folder

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        message: WriterCommitMessage = self._real.write(iterator)
        self._hold("sent", STAYS_S)
        if self._place == "writes":
            Path(self._folder, "writes").touch()
            time.sleep(STAYS_S)
        return message

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._hold("before", STAYS_S)
        self._hold("stops", STOPPED_S)
        self._real.commit(messages, batchId)
        self._hold("after", STAYS_S)
        if self._reaches("raises"):
            raise RuntimeError("the commit raises")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._real.abort(messages, batchId)
        Path(self._folder, f"{self._place}-aborted").touch()

    def _hold(self, place: str, time_s: float) -> None:
        if self._reaches(place):
            time.sleep(time_s)

    def _reaches(self, place: str) -> bool:
        """Once: a query that is started again passes it."""
        if place != self._place:
            return False
        try:
            Path(self._folder, place).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def main(folder: Path, job: Mapping[str, str], place: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(HeldSource)
    given = {"bootstrap.servers": job["servers"]}
    reader = spark.readStream.format("quorumlog").options(**given).option("startingOffsets", "earliest")
    frame = reader.option("subscribe", job["from"]).load().select("key", "value")
    writer = frame.writeStream.format("held").options(**given, topic=job["to"], place=place, folder=str(folder))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    if place in ("writes", "stops"):
        while not (folder / place).exists() and query.isActive:
            query.awaitTermination(0.1)
        query.stop()
    else:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])
