"""Our daemon for Spark's Python processes: the path that it leaves, what it imports, and that Spark works with it."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

from quorumlog.spark import quick_start
from quorumlog.spark.daemon import NEEDED, leave_archives_out, without_archives
from quorumlog.spark.python_path import with_early

HEAVY = ("pyarrow", "grpc", "numba")
IMPORT = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(f"quorumlog.spark.{name}")
print(json.dumps(sorted(sys.modules)))
"""


INSTALLED = os.path.dirname(os.path.dirname(pyspark.__file__))
ZIP = os.path.join("pyspark", "python", "lib", "pyspark.zip")
JAR = os.path.join("pyspark", "jars", "spark-core_2.13-4.3.0.jar")
SETTLED = """
import gc, sys
from quorumlog.spark.session.settling import settle
if sys.argv[1] == "ours":
    gc.freeze()
said = []
for module in ("fractions", None, "graphlib"):
    if module:
        __import__(module)
    before = gc.get_freeze_count()
    settle()
    said.append(gc.get_freeze_count() > before)
print(said)
"""


def test_archives_of_the_installed_pyspark_are_left_out(tmp_path: Path) -> None:
    installed, elsewhere = str(tmp_path / "site-packages"), str(tmp_path / "spark")
    archive, jar, other = (
        os.path.join(at, name) for at, name in ((installed, ZIP), (installed, JAR), (elsewhere, ZIP))
    )
    path = ["", archive, other, jar, "py4j.zip", installed]
    assert without_archives(path) == ["", other, "py4j.zip", installed]
    assert without_archives([archive, other, jar]) == [archive, other, jar]
    users = os.path.join(installed, "pyspark", "jars", "mine.jar")
    assert without_archives([users, installed]) == [users, installed]


def test_what_is_left_out_is_not_looked_into_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task of Spark has the files of all places read anew in which an import has looked before."""
    (jar,) = Path(INSTALLED, "pyspark", "jars").glob("spark-core_*.jar")
    monkeypatch.setattr(sys, "path", [str(jar), *sys.path])
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    for place in (str(jar), os.path.join(jar, "org")):
        importer = pkgutil.get_importer(place)
        assert importer is not None and place in sys.path_importer_cache
    kept = {place for place in sys.path_importer_cache if not place.startswith(str(jar))}
    leave_archives_out()
    assert str(jar) not in sys.path and set(sys.path_importer_cache) == kept


def test_what_a_task_has_imported_is_left_out_of_the_search_for_garbage() -> None:
    def said(whose: str) -> str:
        command = [sys.executable, "-c", SETTLED, whose]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    assert said("ours") == "[True, False, True]"
    assert said("of pyspark's daemon") == "[False, False, False]"


LOOK = """
import json, sys
import pyspark
archives = [one for one in sys.path if one.endswith((".zip", ".jar"))]
print(json.dumps([pyspark.__file__, archives, "quorumlog" in sys.modules]))
"""


def started(python: str, path: Sequence[str], cwd: Path) -> tuple[str, list[str], bool]:
    """Of a process with this PYTHONPATH: where its pyspark is, the archives on its path, whether it loaded ours."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [python, "-c", LOOK]
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    file, archives, has_ours = json.loads(done.stdout.splitlines()[-1])
    return file, [os.path.basename(one) for one in archives], has_ours


def test_any_process_of_spark_leaves_the_archives_out_after_a_quick_start(tmp_path: Path) -> None:
    (jar,) = Path(INSTALLED, "pyspark", "jars").glob("spark-core_*.jar")
    archive = os.path.join(INSTALLED, ZIP)
    early = [archive, str(jar), with_early("")]
    file, archives, _ = started(sys.executable, early, tmp_path)
    assert not file.startswith(archive) and archive not in archives and jar.name not in archives
    file, archives, _ = started(sys.executable, [archive, str(jar)], tmp_path)
    assert file.startswith(archive) and {"pyspark.zip", jar.name} <= set(archives)
    later = tmp_path / "later"
    later.mkdir()
    (later / "sitecustomize.py").write_text("import sys; sys.path.append('its.zip')")
    assert "its.zip" in started(sys.executable, [*early, str(later)], tmp_path)[1]


def test_other_processes_are_left_alone(tmp_path: Path) -> None:
    """One without Spark's archive, and one of a Python that has no quorumlog."""
    assert not started(sys.executable, [with_early("")], tmp_path)[2]
    venv.create(tmp_path / "bare", with_pip=False)
    archive = os.path.join(INSTALLED, ZIP)
    (py4j,) = Path(archive).parent.glob("py4j*.zip")
    file, _, has_ours = started(
        str(tmp_path / "bare" / "bin" / "python"), [archive, str(py4j), with_early("")], tmp_path
    )
    assert file.startswith(archive) and not has_ours


def test_a_quick_start_changes_the_path_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["a", "b"]))
    for _ in range(2):
        quick_start()
        folder, *others = os.environ["PYTHONPATH"].split(os.pathsep)
        assert others == ["a", "b"] and Path(folder, "sitecustomize.py").is_file()


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


@pytest.mark.parametrize("module", ["pyspark.daemon", "quorumlog.spark.daemon"])
@pytest.mark.parametrize("worker", sorted(NEEDED))
def test_it_becomes_the_daemon_of_pyspark(worker: str, module: str) -> None:
    """Which first writes the port that it listens at, and ends at the end of its standard input."""
    command = [sys.executable, "-m", module, worker]
    environment = {**os.environ, "PYTHONPATH": with_early(os.path.join(INSTALLED, ZIP))}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert len(done.stdout) == 4, done.stderr.decode()
    assert 0 < int.from_bytes(done.stdout, "big") < 65536
