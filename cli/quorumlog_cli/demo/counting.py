"""The driver of the demo's third act: `python -m quorumlog_cli.demo.counting`. It ends with its query or its input.

Its query reads the flights, counts them per carrier, and writes all counts again with each batch, exactly once. A
record's key is the carrier, its value the count up to this batch, its time that of the batch, which Spark keeps in the
checkpoint: so a batch that is repeated has the same time.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """column: of the carrier. at_once: records of one batch. checkpoint: folder; its name is that of the stream."""

    bootstrap_servers: str
    source: str
    target: str
    column: int
    at_once: int
    checkpoint: Path


def count(spark: Any, work: Work) -> None:
    """From the checkpoint to the end of what there is. Raises what the query fails with."""
    servers = {"bootstrap.servers": work.bootstrap_servers}
    reader = spark.readStream.format("quorumlog").options(**servers, subscribe=work.source, startingOffsets="earliest")
    flights = reader.option("maxOffsetsPerTrigger", work.at_once).load()
    carriers = flights.selectExpr(f"split(CAST(value AS STRING), ',')[{work.column + 1}] AS carrier")
    counts = carriers.groupBy("carrier").count()
    rows = counts.selectExpr("carrier AS key", "CAST(count AS STRING) AS value", "current_timestamp() AS timestamp")
    writer = rows.writeStream.format("quorumlog").options(**servers, topic=work.target).outputMode("complete")
    writer.option("checkpointLocation", str(work.checkpoint)).trigger(availableNow=True).start().awaitTermination()


def _end_with_input() -> None:
    """Java, whose input is a pipe from this process, ends with it."""
    sys.stdin.read()
    os._exit(1)


def main(arguments: Sequence[str] | None = None) -> None:
    from quorumlog_cli.spark_session import session

    parser = argparse.ArgumentParser(prog="python -m quorumlog_cli.demo.counting")
    for name in ("bootstrap-servers", "source", "target"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("column", "at-once"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("checkpoint", "log"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args(arguments)
    work = Work(given.bootstrap_servers, given.source, given.target, given.column, given.at_once, given.checkpoint)
    threading.Thread(target=_end_with_input, name="end of input", daemon=True).start()
    with session(given.log, "quorumlog demo, third act", "local[2]") as spark:
        count(spark, work)


if __name__ == "__main__":
    main()
