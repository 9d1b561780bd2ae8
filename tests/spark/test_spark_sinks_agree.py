"""Spark's own Kafka sink and ours write the same rows: the same keys, values and headers in the same partitions."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import get_kafka, missing
from bench.spark.tools import NEWEST, get_spark, is_downloaded
from differential.sides import SETTINGS, SMALL_HEAP
from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from tests.spark.sinks_script import ROWS

RUN_S = 400
PARTITIONS = 4
SCRIPT = Path(__file__).with_name("sinks_script.py")
NOT_DOWNLOADED = f"pyspark {NEWEST} and its connector are not here: run ./dev bench spark --quick once"


@contextmanager
def servers(kind: str, folder: Path) -> Iterator[str]:
    with ExitStack() as stack:
        if kind == "quorumlog":
            yield stack.enter_context(LocalCluster(folder / "cluster", nodes=1)).bootstrap_servers
            return
        peer = KafkaPeer(get_kafka(), folder / "node", nodes=1, changes=SETTINGS, options=SMALL_HEAP)
        stack.callback(peer.close)
        peer.start()
        yield peer.bootstrap_servers


def rows_of(cluster: Cluster, topic: str) -> Counter[Any]:
    found = cluster.consumer(topic, start="earliest", stop="latest")
    return Counter((one.partition, one.key, one.value, tuple(one.headers)) for one in found)


@pytest.mark.timeout(RUN_S)
@pytest.mark.parametrize("kind", ["quorumlog", "kafka"])
def test_the_same_rows_in_the_same_partitions(kind: str, tmp_path: Path) -> None:
    if reason := missing() or ("" if is_downloaded() else NOT_DOWNLOADED):
        pytest.skip(reason)
    tools = get_spark()
    with servers(kind, tmp_path) as address, Cluster(address, default_api_timeout_ms=120_000) as cluster:
        for topic in ("theirs", "ours"):
            cluster.admin.create_topic(topic, PARTITIONS)
        job = {"servers": address, "theirs": "theirs", "ours": "ours", "classpath": f"{tools.jars}/*"}
        done = subprocess.run(
            [str(tools.python), str(SCRIPT), json.dumps(job)], cwd=tmp_path, capture_output=True, text=True,
            env=tools.environment(tools.install(tmp_path / "installed", fill_cache=False)), timeout=RUN_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3_000:]
        ours, theirs = rows_of(cluster, "ours"), rows_of(cluster, "theirs")
    assert theirs.total() == ROWS
    assert ours == theirs
