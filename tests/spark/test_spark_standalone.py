"""A standalone master with two workers: they share no process and no package with the driver.

`local-cluster` starts workers, too, but as children of the driver with its environment. Here the workers have their own
copy of the package, and may be of another user without a home who can write nowhere (numba/numba#7883).
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.verifying import verify
from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from tests.records.test_compiled_code import ROOT, unwritable
from tests.spark.once_values import are_once
from tests.spark.standalone import Standalone, driver_environment, python_for, standalone
from tests.spark.versions import NO_OTHER_USER

SCRIPT = Path(__file__).with_name("standalone_script.py")
RECORDS = 10_000
RUN_S = 600.0
OTHER = "nobody"
WANT = [[partition, offset] for partition in range(2) for offset in range(RECORDS // 2)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    with LocalCluster(tmp_path_factory.mktemp("standalone") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("orders", 2)
        with made.client.producer() as producer:
            for number in range(RECORDS):
                producer.send("orders", b"%d" % number, partition=number % 2)
        yield made


@pytest.fixture
def package() -> Iterator[Path]:
    """A copy of ours that everybody can read and nobody can write; its parents can be passed by everybody."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    unwritable(folder)
    shutil.copy(ROOT / "pyspark_quorumlog.py", folder)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.timeout(2 * RUN_S)
@pytest.mark.parametrize("user", [None, OTHER], ids=["as this user", "as another user"])
def test_a_read_writes_and_a_load(cluster: LocalCluster, package: Path, tmp_path: Path, user: str | None) -> None:
    if user is not None and (os.getuid() != 0 or python_for(user) is None):
        pytest.skip(NO_OTHER_USER)
    name = f"by-{user or 'this-user'}"
    for kind in ("batch", "stream"):
        cluster.client.admin.create_topic(f"{name}-{kind}", 3)
    with standalone(package, user=user) as spark:
        found = run(cluster, spark, tmp_path, name)
        table = ds.dataset(spark.shared).to_table(columns=["partition", "offset"]).to_pydict()
        loaded = sorted(map(list, zip(table["partition"], table["offset"], strict=True)))
        report = verify(DirectoryStore(str(spark.shared)))
    assert found["rows"] == WANT and loaded == WANT
    assert (report.rows, report.faults) == (RECORDS, ())
    assert are_once(cluster, name, RECORDS)
    runs_as = os.getuid() if user is None else pwd.getpwnam(user).pw_uid
    assert [place[0] for place in found["places"]] == ["0", "1"], "both workers have run tasks"
    theirs = (runs_as, str(package / "quorumlog" / "__init__.py"), False)
    assert {tuple(place[1:]) for place in found["places"]} == {theirs}


def run(cluster: LocalCluster, spark: Standalone, place: Path, name: str) -> dict[str, Any]:
    """The driver has the package of this tree, and lets everybody write into the folders that it makes for the load.

    place: where it runs. name: of what it writes.
    """
    done = subprocess.run(
        [str(spark.python), str(SCRIPT), cluster.bootstrap_servers, "orders", spark.master, str(spark.shared), name],
        env=driver_environment(spark, ROOT), cwd=place, capture_output=True, text=True, timeout=RUN_S, check=False,
        umask=0,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
