"""What a cluster tells of itself as tables: their rows, their columns, and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from quorumlog.client.errors import ConfigError
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.spark.format.source import DefaultSource
from quorumlog.spark.read.options import parse_stream_options, parse_table_options
from quorumlog.spark.read.tables import SCHEMAS, TableReader
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until

BASE = {"bootstrap.servers": "h:1"}


def test_a_table_has_its_own_schema() -> None:
    source = DefaultSource({**BASE, "table": "Groups"})
    assert source.schema() == SCHEMAS["groups"]
    assert isinstance(source.reader(source.schema()), TableReader)
    assert parse_table_options(BASE) is None


REFUSED = [
    ({"table": "metadata.records"}, "'metadata.records' is read from files only.*readFrom=files, and path"),
    ({"table": "topics"}, "must be one of partitions, groups, transactions"),
    ({"table": "groups", "subscribe": "t"}, "'subscribe' has no meaning with table"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED, ids=[next(iter(c[0].values())) + str(len(c[0])) for c in REFUSED])
def test_what_is_no_table_is_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse_table_options({**BASE, **given})


def test_mistakes_are_refused() -> None:
    with pytest.raises(ConfigError, match="the address of the cluster"):
        parse_table_options({"table": "groups"})
    with pytest.raises(ConfigError, match="'table' is for batch reads"):
        parse_stream_options({**BASE, "subscribe": "t", "table": "groups"})
    source = DefaultSource({**BASE, "table": "groups"})
    with pytest.raises(ConfigError, match="unknown column 'lagg'; the columns are: group,"):
        source.reader(StructType([StructField("lagg", StringType())]))
    with pytest.raises(ConfigError, match="'lag' is bigint, not string"):
        source.reader(StructType([StructField("lag", StringType())]))


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("tables") / "cluster") as made:
        made.client.admin.create_topic("orders", 2, 3)
        made.wait_healthy()
        yield made


def rows(cluster: LocalCluster, table: str) -> list[dict[str, Any]]:
    """As a worker of Spark reads them."""
    options = parse_table_options({"bootstrap.servers": cluster.bootstrap_servers, "table": table})
    assert options is not None
    made = TableReader(options, SCHEMAS[table])
    return [row for part in made.partitions() for batch in made.read(part) for row in batch.to_pylist()]


def test_partitions_groups_and_transactions(spark: Any, cluster: LocalCluster) -> None:
    client = cluster.client
    client.admin.alter_group_offsets("readers", {("orders", 0): CommittedOffset(2, metadata="m")})
    with client.producer(transactional_id="payer") as producer:
        producer.begin()
        for _ in range(5):
            producer.send("orders", b"v", partition=0).result()
        found = {row["transactionalId"]: row for row in rows(cluster, "transactions")}
        payer = found["payer"]
        assert payer["state"] == "Ongoing" and payer["partitions"] == [{"topic": "orders", "partition": 0}]
        assert payer["startTime"] is not None and payer["producerId"] >= 0
        producer.commit()

    def payers() -> list[tuple[str, Any]]:
        found = [row for row in rows(cluster, "transactions") if row["transactionalId"] == "payer"]
        return [(row["state"], row["partitions"]) for row in found]

    wait_until(lambda: payers() == [("CompleteCommit", None)], 60, "the transaction's marker")
    (group,) = rows(cluster, "groups")
    assert (group["group"], group["state"], group["topic"], group["partition"]) == ("readers", "Empty", "orders", 0)
    assert (group["offset"], group["metadata"], group["endOffset"], group["lag"]) == (2, "m", 6, 4)  # and a marker
    read = spark.read.format("quorumlog").option("bootstrap.servers", cluster.bootstrap_servers)
    frame = read.option("table", "partitions").load().where("topic = 'orders'").orderBy("partition")
    first, second = frame.collect()
    assert (first.startOffset, first.endOffset, second.endOffset) == (0, 6, 0)
    assert first.bytes > 0 == second.bytes and first.leader in first.isr and len(first.replicas) == 3
    few = read.option("table", "groups").schema("lag bigint, group string").load().collect()
    assert [tuple(row) for row in few] == [(4, "readers")]
