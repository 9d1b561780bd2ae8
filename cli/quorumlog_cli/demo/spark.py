"""Spark's part: the topic as a table of flights, the figures per carrier, and the position of every row."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quorumlog_cli.demo.flights import NOTHING, Figures

JAVA_END_LIMIT_S = 20.0  # Java takes about one second: it removes its temporary files
SQL = """
    SELECT carrier, count(*) AS flights, count(dep_delay) AS departed,
           sum(dep_delay) AS delay_min, avg(dep_delay) AS mean_delay_min
    FROM flights GROUP BY carrier
"""
_NUMBERS = ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time",
            "arr_delay", "flight", "air_time", "distance", "hour", "minute")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stored:
    """One entry per record of the topic, unordered. rows: -1 if the value is not a flight."""

    rows: Any
    partitions: Any
    offsets: Any
    checksums: Any

    def __len__(self) -> int:
        return len(self.rows)


@contextmanager
def session(log: Path) -> Iterator[Any]:
    """A Spark session with two cores of this machine. Its processes write to `log`. None of them outlives it."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("quorumlog demo").master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _stderr_to(log):
            spark = builder.getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
    finally:
        _end_gateway()


def _end_gateway() -> None:
    """End the Java process that pyspark started, if it started one.

    `SparkSession.stop` leaves it running for the next session. It ends by itself about a second after this process has.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    end_process(gateway.proc, JAVA_END_LIMIT_S)


def end_process(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Close the standard input of a process that ends at its end of file, wait for it, and kill it after `limit_s`."""
    assert process.stdin is not None, "its end of file is the request to end"
    process.stdin.close()
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def read_flights(spark: Any, topic: str, bootstrap_servers: str, columns: tuple[str, ...]) -> Any:
    """A DataFrame of the topic: partition, offset, checksum, row and the columns of the CSV."""
    from pyspark.sql import functions as f

    reader = spark.read.format("quorumlog").option("bootstrap.servers", bootstrap_servers).option("subscribe", topic)
    kinds = {name: "INT" if name in _NUMBERS else "STRING" for name in columns}
    schema = ", ".join(f"{name} {kind}" for name, kind in {"row": "INT", **kinds}.items())
    parsed = f.from_csv(f.col("value").cast("string"), schema, {"nullValue": NOTHING})
    found = reader.load().select("partition", "offset", f.crc32("value").alias("checksum"), parsed.alias("flight"))
    return found.select("partition", "offset", "checksum", "flight.*")


def read_stored(flights: Any) -> Stored:
    """The position of every record, through an Arrow table, so that no row becomes an object."""
    table = flights.selectExpr("coalesce(row, -1) AS row", "partition", "offset", "checksum").toArrow()
    columns = {name: table.column(name).to_numpy() for name in table.schema.names}
    return Stored(columns["row"], columns["partition"], columns["offset"], columns["checksum"].astype(np.uint32))


def figures_of(spark: Any, flights: Any) -> dict[str, Figures]:
    """Figures per carrier. A row that is stored twice counts twice, and so is detected."""
    flights.createOrReplaceTempView("flights")
    return {
        row.carrier: Figures(
            flights=row.flights, departed=row.departed, delay_min=row.delay_min, mean_delay_min=row.mean_delay_min
        )
        for row in sorted(spark.sql(SQL).collect(), key=lambda row: row.carrier)
    }


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Processes started in this block keep `log` as their standard error; ours is restored."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
