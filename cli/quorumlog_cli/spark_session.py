"""A Spark session of a command: none of its processes outlives it, and what they write goes into a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quorumlog.spark.python_path import quick_start

JAVA_END_LIMIT_S = 20.0  # Java takes about one second: it removes its temporary files
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # environment variable that spark-submit sets: its session is there already


@contextmanager
def session(log: Path, app: str, master: str) -> Iterator[Any]:
    """Spark's processes write to `log`. master: as for spark-submit, whose own one counts if it started this process.

    Start it before any client: Spark forks to start Java, and a running gRPC may kill the child.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    quick_start()
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    is_submitted = SUBMITTED in os.environ
    if not is_submitted:
        settings["spark.master"] = master
    if not is_submitted and master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
        }
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app)
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
    if gateway is None or getattr(gateway, "proc", None) is None:
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
