"""A Spark session of one command: on this machine, with the command's Python, and gone when the command ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

JAVA_END_LIMIT_S = 20.0  # Java takes about one second: it removes its temporary files
QUIET: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def session(log: Path, name: str, more: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A Spark session with two cores of this machine. Its processes write to `log`. None of them outlives it.

    more: settings of Spark, over `QUIET`. A client that uses gRPC starts after it: Spark forks to start Java, and a
    running gRPC may kill the child.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master("local[2]")
    for key, value in {**QUIET, **(more or {})}.items():
        builder = builder.config(key, value)
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
