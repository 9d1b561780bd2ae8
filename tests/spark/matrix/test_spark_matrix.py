"""Spark's own Kafka source and ours read the same topics with the same options, in one session: same rows, same errors.

The table is matrix_cells.py; matrix_differences.py lists where they differ, with a reason each. Spark's source comes
from Maven, of the newest version that is there, and works in a newer Spark, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.peers.kafka_tools import Unavailable
from bench.spark.tools import get_connector
from quorumlog.client.blocking import Cluster
from quorumlog.spark.format.stream_source import HAS_LIMITS
from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from tests.spark.kafka_server import client_of, kafka_server
from tests.spark.matrix.judging import faults
from tests.spark.matrix.matrix_cells import Cell, cells
from tests.spark.matrix.matrix_differences import WANTED
from tests.spark.matrix.matrix_world import written
from tests.spark.versions import NEEDS_LIMITS

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("matrix_script.py")
LEAST, LEAST_QUICK = 160, 15  # cells that run
QUICK_S, WHOLE_S = 280.0, 1_800.0

pytestmark = pytest.mark.skipif(not HAS_LIMITS, reason=NEEDS_LIMITS)


@pytest.fixture(scope="module")
def connector() -> Path:
    """The folder of the jars of Spark's source."""
    try:
        use_java()
        return get_connector()
    except (NoJava, Unavailable) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def ours(connector: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("matrix") / "cluster", nodes=1) as made:
        yield made


@pytest.fixture(scope="module")
def start_ms(ours: LocalCluster) -> Iterator[int]:
    with written(ours.client) as begun_ms:
        yield begun_ms


@pytest.mark.timeout(QUICK_S)
def test_the_quick_part(ours: LocalCluster, start_ms: int, connector: Path, tmp_path: Path) -> None:
    wanted = [cell for cell in cells(start_ms) if cell.is_quick]
    found = read(wanted, ours.bootstrap_servers, connector, tmp_path)
    assert faults(wanted, found, WANTED, LEAST_QUICK) == []


@pytest.mark.timeout(WHOLE_S)
def test_the_whole_table(ours: LocalCluster, start_ms: int, connector: Path, tmp_path: Path) -> None:
    wanted = cells(start_ms)
    found = read(wanted, ours.bootstrap_servers, connector, tmp_path)
    assert faults(wanted, found, WANTED, LEAST) == []


@pytest.mark.timeout(WHOLE_S)
def test_the_whole_table_with_an_apache_kafka(connector: Path, tmp_path: Path) -> None:
    with kafka_server(tmp_path / "node") as servers, client_of(servers) as client:
        compare_whole(client, servers, connector, tmp_path)


def compare_whole(client: Cluster, servers: str, connector: Path, folder: Path) -> None:
    with written(client) as begun_ms:
        wanted = cells(begun_ms)
        found = read(wanted, servers, connector, folder)
    assert faults(wanted, found, WANTED, LEAST) == []


def read(wanted: Sequence[Cell], servers: str, connector: Path, folder: Path) -> dict[str, list[Any]]:
    """The outcomes of cells, theirs and ours. folder: for files. Raises AssertionError if the session failed."""
    job, outcomes = folder / "job.json", folder / "outcomes.jsonl"
    asked = {"servers": servers, "classpath": f"{connector}/*", "cells": [cell.to_json() for cell in wanted]}
    job.write_text(json.dumps(asked))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(job), str(outcomes)], env={**environment, "PYTHONPATH": path}, cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    lines = map(json.loads, outcomes.read_text().splitlines())
    return {name: [theirs, ours] for name, theirs, ours in lines}
