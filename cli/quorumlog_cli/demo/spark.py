"""Spark's part: the topic as a table of flights, the figures per carrier, and the position of every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorumlog_cli.demo.flights import NOTHING, Figures

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
