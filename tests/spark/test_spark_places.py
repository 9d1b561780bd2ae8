"""The package in places where workers cannot write, without a home, and inside the archive of `--py-files`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from tests.records.test_compiled_code import ROOT, unwritable
from tests.spark.once_values import are_once

SCRIPT = Path(__file__).with_name("place_script.py")
RECORDS = 10_000
RUN_S = 480.0
HIDDEN = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "PYTHONPATH", "SPARK_HOME")
WANT = [[partition, offset] for partition in range(2) for offset in range(RECORDS // 2)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    with LocalCluster(tmp_path_factory.mktemp("places") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("orders", 2)
        with made.client.producer() as producer:
            for number in range(RECORDS):
                producer.send("orders", b"%d" % number, partition=number % 2)
        yield made


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """All packages of this environment but ours; beside it a `python` that finds these alone."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for place in {sysconfig.get_path(key) for key in ("purelib", "platlib")}:
        for one in Path(place).iterdir():
            if "quorumlog" not in one.name and one.suffix != ".pth":
                (folder / one.name).symlink_to(one)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    return folder


def run(cluster: LocalCluster, others: Path, package: Path | None, archive: str, name: str) -> dict[str, Any]:
    """package: the folder that has it; None: it is in the archive. name: of what it writes exactly once.

    The archive is on the driver's path, too: Spark asks a stream's source on the driver, in a process that does not
    look at `--py-files` (any Python source fails so, without ours).
    """
    for kind in ("batch", "stream"):
        cluster.client.admin.create_topic(f"{name}-{kind}", 3)
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    python = str(others.parent / "python")
    more = {
        "PYTHONPATH": os.pathsep.join(str(place) for place in (package or archive, others)), "PYSPARK_PYTHON": python,
        "XDG_CACHE_HOME": "/dev/null", "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    done = subprocess.run(
        [python, str(SCRIPT), cluster.bootstrap_servers, "orders", archive, name],
        env={**environment, **more}, cwd=others.parent, capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert are_once(cluster, name, RECORDS)
    return found


@pytest.mark.timeout(RUN_S)
def test_workers_that_can_write_nowhere(cluster: LocalCluster, others: Path, tmp_path: Path) -> None:
    """numba/numba#7883."""
    package = unwritable(tmp_path / "package")
    shutil.copy(ROOT / "pyspark_quorumlog.py", package)
    found = run(cluster, others, package, "", "nowhere")
    assert found["rows"] == WANT and found["places"] == [str(package / "quorumlog" / "__init__.py")]


@pytest.mark.timeout(RUN_S)
def test_the_archive_of_py_files(cluster: LocalCluster, others: Path, tmp_path: Path) -> None:
    """What our package needs is installed; the package itself is not."""
    archive = tmp_path / "quorumlog.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for file in (*sorted((ROOT / "quorumlog").rglob("*.py")), ROOT / "pyspark_quorumlog.py"):
            made.write(file, file.relative_to(ROOT))
    found = run(cluster, others, None, str(archive), "archive")
    assert found["rows"] == WANT and all("quorumlog.zip/quorumlog" in place for place in found["places"])
