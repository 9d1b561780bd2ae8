"""Our daemon for Spark's Python processes: the path that it leaves, what it imports, and that Spark works with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quorumlog.spark.daemon import ARCHIVE, NEEDED, without_archives

HEAVY = ("pyarrow", "grpc", "numba")
IMPORT = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(f"quorumlog.spark.{name}")
print(json.dumps(sorted(sys.modules)))
"""


def test_the_archive_of_the_installed_pyspark_is_left_out(tmp_path: Path) -> None:
    installed, elsewhere = str(tmp_path / "site-packages"), str(tmp_path / "spark")
    archive, other = os.path.join(installed, ARCHIVE), os.path.join(elsewhere, ARCHIVE)
    assert without_archives(["", archive, other, "py4j.zip", installed]) == ["", other, "py4j.zip", installed]
    assert without_archives([archive, other]) == [archive, other]


def imported(*names: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, *names], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout))


def test_a_planner_of_spark_loads_no_more_than_it_needs() -> None:
    lookup = imported(*NEEDED["pyspark.sql.worker.lookup_data_sources"])
    assert not any(name.startswith("quorumlog.client.a") for name in lookup)
    create = imported(*NEEDED["pyspark.sql.worker.create_data_source"])
    assert [name for name in HEAVY if name in create] == []
    assert "quorumlog.client.blocking" not in create
    for planner in ("plan_data_source_read", "data_source_pushdown_filters"):
        assert [name for name in HEAVY if name in imported(*NEEDED[f"pyspark.sql.worker.{planner}"])] == []
    read = imported(*NEEDED["pyspark.worker"])
    assert "grpc" not in read and "numba" not in read and "pyarrow" in read


@pytest.mark.parametrize("worker", sorted(NEEDED))
def test_it_becomes_the_daemon_of_pyspark(worker: str) -> None:
    """Which first writes the port that it listens at, and ends at the end of its standard input."""
    command = [sys.executable, "-m", "quorumlog.spark.daemon", worker]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert len(done.stdout) == 4, done.stderr.decode()
    assert 0 < int.from_bytes(done.stdout, "big") < 65536
