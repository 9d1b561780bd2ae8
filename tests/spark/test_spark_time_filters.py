"""Times beyond the records of some partitions: no rows, no error, nothing fetched, and the same rows with pushdown.

What Spark calls is called here; test_spark_cluster.py has filters in a session.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import datasource

from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import EARLIEST
from quorumlog.spark.format.source import BatchReader
from quorumlog.spark.read.options import parse_read_options
from quorumlog.spark.read.schema import schema_of
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.spark.kafka_server import Served
from tests.spark.versions import NEEDS_FILTERS

START_MS = time.time_ns() // 1_000_000 - 3_600_000  # what is a week old may be deleted
PLAIN, EMPTY, MARKED, TRIMMED = range(4)  # partitions
TIMES = {PLAIN: (100, 50, 300, 200), EMPTY: (), MARKED: (150,), TRIMMED: (10, 20)}  # ms after START_MS
SETTLED_S = 30.0
HAS_FILTERS = hasattr(datasource, "EqualTo")


def at(ms: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=START_MS + ms)


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("times") / "cluster", nodes=1) as made:
        write_timed(made)
        yield made


def write_timed(made: Served) -> None:
    made.client.admin.create_topic("timed", len(TIMES))
    with made.client.producer() as plain, made.client.producer(transactional_id="marks") as marks:
        marks.init_transactions()
        marks.begin()
        for partition, times in TIMES.items():
            for ms in times:
                producer = marks if partition == MARKED else plain
                producer.send("timed", b"v", partition=partition, timestamp_ms=START_MS + ms).result()
        marks.commit()
    made.client.admin.delete_records({("timed", TRIMMED): len(TIMES[TRIMMED])})
    wait_until(lambda: starts(made)[TRIMMED] == len(TIMES[TRIMMED]), SETTLED_S, "the trimmed start")
    wait_until(lambda: len(rows(made)) == 5, SETTLED_S, "the marker")


def starts(cluster: Served) -> dict[int, int]:
    found = cluster.client.admin.list_offsets({("timed", partition): EARLIEST for partition in TIMES})
    return {partition: one.offset for (_, partition), one in found.items()}


def reader(cluster: Served, **given: str) -> BatchReader:
    options = parse_read_options({"bootstrap.servers": cluster.bootstrap_servers, "subscribe": "timed", **given})
    return BatchReader(options, schema_of(options.shape))


def read(made: BatchReader) -> list[tuple[int, int, datetime]]:
    found = [row for part in made.partitions() for batch in made.read(part) for row in batch.to_pylist()]
    return sorted((row["partition"], row["offset"], row["timestamp"]) for row in found)


def rows(cluster: Served, **given: str) -> list[tuple[int, int, datetime]]:
    return read(reader(cluster, **given))


# Conditions on the time that all hold, in ms, and how many partitions have to be read for them. A leader takes the
# marker of a transaction, which is of now, for a record, as Kafka does: so MARKED is read for times that no record has.
CASES: list[tuple[str, list[tuple[str, float]], int]] = [
    ("beyond the last", [("GreaterThan", 300)], 1),
    ("from the last on", [("GreaterThanOrEqual", 300)], 2),
    ("a part of a millisecond before the last", [("GreaterThan", 299.5)], 2),
    ("before the first", [("LessThan", 50)], 2),
    ("between two records", [("EqualTo", 125)], 2),
    ("one record", [("EqualTo", 150)], 2),
    ("a contradiction", [("GreaterThan", 200), ("LessThan", 100)], 2),
    ("far away", [("GreaterThan", 1e14)], 0),
    ("long ago", [("EqualTo", -2e12)], 2),
    ("from long ago on", [("GreaterThan", -2e12)], 2),
]
HOLDS = {
    "EqualTo": datetime.__eq__,
    "GreaterThan": datetime.__gt__,
    "GreaterThanOrEqual": datetime.__ge__,
    "LessThan": datetime.__lt__,
}


@pytest.mark.skipif(not HAS_FILTERS, reason=NEEDS_FILTERS)
@pytest.mark.parametrize(("conditions", "planned"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_rows_are_the_same_with_pushdown(
    cluster: LocalCluster, conditions: list[tuple[str, float]], planned: int
) -> None:
    """trinodb/trino#13167: a look-up that finds no offset is no offset -1."""
    compare_with_pushdown(cluster, conditions, planned)


def compare_with_pushdown(cluster: Served, conditions: list[tuple[str, float]], planned: int) -> None:
    from quorumlog.spark.format.pushing import PushingReader

    def passing(found: list[tuple[int, int, datetime]]) -> list[tuple[int, int, datetime]]:
        return [row for row in found if all(HOLDS[kind](row[2], at(ms)) for kind, ms in conditions)]

    options = parse_read_options({"bootstrap.servers": cluster.bootstrap_servers, "subscribe": "timed"})
    pushing = PushingReader(options, schema_of(options.shape))
    pushing.pushFilters([getattr(datasource, kind)(("timestamp",), at(ms)) for kind, ms in conditions])
    assert passing(read(pushing)) == passing(rows(cluster))
    tasks = {part.value.partition: part.value for part in pushing.partitions()}
    assert len(tasks) == planned
    if planned == 1:
        assert (tasks[MARKED].start, tasks[MARKED].end) == (1, 2), "the marker alone"


def test_an_end_by_time_in_the_future_is_everything(cluster: LocalCluster) -> None:
    read_to_the_future(cluster)


def read_to_the_future(cluster: Served) -> None:
    later = str(START_MS + 7_200_000)
    assert len(rows(cluster)) == 5 and rows(cluster, endingTimestamp=later) == rows(cluster)


def test_a_start_by_time_in_the_future_follows_its_strategy(cluster: LocalCluster) -> None:
    read_from_the_future(cluster)


def read_from_the_future(cluster: Served) -> None:
    later = {"startingTimestamp": str(START_MS + 7_200_000)}
    with pytest.raises(ConfigError, match=r"in timed-0, timed-1, timed-2, timed-3; .*Strategy=latest"):
        rows(cluster, **later)
    latest = reader(cluster, **later, startingOffsetsByTimestampStrategy="latest")
    assert latest.partitions() == []
