"""Batch and stream through a session of Spark Connect, whose client has no Java of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster

SCRIPT_S = 480.0
RECORDS = 200


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=1) as made:
        yield made


@pytest.mark.timeout(SCRIPT_S)
def test_batch_and_stream_read_and_write_each_record_once(cluster: LocalCluster, tmp_path: Path) -> None:
    copies = ("copy-batch", "copy-stream", "once-batch", "once-stream")
    for topic in ("orders", *copies):
        cluster.client.admin.create_topic(topic, 2)
    with cluster.client.producer() as producer:
        for number in range(RECORDS):
            producer.send("orders", b"v%d" % number, partition=number % 2)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_script", cluster.bootstrap_servers, "orders", str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True, text=True, timeout=SCRIPT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["session"].startswith("pyspark.sql.connect")
    want = sorted([number % 2, number // 2, f"v{number}"] for number in range(RECORDS))
    assert told["batch"] == want
    assert told["stream"] == want
    for topic in copies:
        reader = cluster.client.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed")
        found = sorted(one.value for one in reader)
        assert found == sorted(b"v%d" % number for number in range(RECORDS))
