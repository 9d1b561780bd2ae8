"""Spark writes exactly once into real nodes: batches and streams, replays, failures, copies of checkpoints."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.spark.stream_source import HAS_LIMITS
from quorumlog.testing import LocalCluster

WAIT_S = 240
PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("spark") / "cluster") as made:
        yield made


def topic(cluster: LocalCluster, name: str, partitions: int = PARTITIONS) -> str:
    cluster.client.admin.create_topic(name, partitions, 3)
    cluster.wait_healthy()
    return name


def options(cluster: LocalCluster, name: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": name, **more}


def numbers(spark: Any, end: int, tasks: int = 2) -> Any:
    return spark.range(0, end, 1, tasks).selectExpr("cast(id as string) as value")


def write(frame: Any, given: dict[str, str]) -> None:
    frame.write.format("quorumlog").options(**given).mode("append").save()


def values(cluster: LocalCluster, name: str, isolation: str = "read_committed") -> Counter[int]:
    found = cluster.client.consumer(name, start="earliest", stop="latest", isolation_level=isolation)
    return Counter(int(record.value or b"-1") for record in found)


def once(end: int) -> Counter[int]:
    return Counter(range(end))


def open_transactions(cluster: LocalCluster) -> list[str]:
    listed = cluster.client.admin.list_transactions(states=["Ongoing"])
    return [one.transaction.transactional_id for one in listed]


def refused(act: Callable[[], Any], why: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=why):
        act()


def test_a_batch_is_there_as_a_whole(spark: Any, cluster: LocalCluster) -> None:
    name = topic(cluster, "batch")
    for transport in ("auto", "grpc"):
        before = sum(values(cluster, name).values())
        write(numbers(spark, 1_000, 8), options(cluster, name, transport=transport))
        assert sum(values(cluster, name).values()) == before + 1_000
    assert values(cluster, name) == Counter({number: 2 for number in range(1_000)})
    assert open_transactions(cluster) == []
