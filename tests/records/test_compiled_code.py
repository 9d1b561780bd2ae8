"""Compiled code that may not be kept: beside a source that cannot be written, on a full disk, in a damaged file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN_S = 100.0
SCRIPT = """
import resource, sys
folder, is_full = sys.argv[1], sys.argv[2] == "full"
if is_full:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
import pyarrow as pa
import quorumlog
from quorumlog.records.columnar import decode_kernels, partition_keys
from quorumlog.records.columnar.form import partitioner
from quorumlog.records.columnar.compiled import kept_in
assert quorumlog.__file__.startswith(folder), quorumlog.__file__
partitioner.compiled = True
assert len(partition_keys(pa.array([b"k", None]), 3)) == 2
print("kept in", kept_in())
"""


def unwritable(folder: Path) -> Path:
    """A copy of the package. Its folders for compiled code cannot be made, since files have their names."""
    shutil.copytree(ROOT / "quorumlog", folder / "quorumlog", ignore=shutil.ignore_patterns("__pycache__"))
    for one in (folder / "quorumlog").rglob("*"):
        if one.is_dir():
            (one / "__pycache__").touch()
    return folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unwritable(tmp_path_factory.mktemp("package"))


def run(package: Path, *, full: bool = False, **more: str) -> tuple[str, list[str]]:
    """Where code is kept, and the warnings. HOME is not set."""
    hidden = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(package), "full" if full else ""],
        env={**environment, "PYTHONPATH": str(package), "XDG_CACHE_HOME": "/dev/null", **more}, cwd=package,
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "UserWarning" in line]
    return done.stdout.strip().removeprefix("kept in").strip(), told


def test_where_nothing_can_be_written_it_is_compiled_with_one_warning(package: Path) -> None:
    """numba/numba#7883: the import of functions that are to be cached failed."""
    place, told = run(package)
    assert len(told) == 1, told
    (only,) = told
    assert place == "" and "compiled code cannot be kept" in only and "NUMBA_CACHE_DIR" in only


def test_on_a_full_disk_it_is_compiled_with_one_warning(package: Path, tmp_path: Path) -> None:
    place, told = run(package, full=True, NUMBA_CACHE_DIR=str(tmp_path))
    (only,) = told
    assert place.startswith(str(tmp_path)) and f"compiled code in {place} cannot be written (OSError" in only


def truncate(file: Path) -> None:
    file.write_bytes(b"")


def garble(file: Path) -> None:
    file.write_bytes(bytes(reversed(file.read_bytes())))


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [truncate, garble])
def test_a_damaged_file_is_compiled_anew_once(
    package: Path, tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(package, **folder)[1] == []
    (file,) = tmp_path.rglob(f"partition_kernels.*.{suffix}")
    damage(file)
    (only,) = run(package, **folder)[1]
    assert "cannot be read" in only
    assert run(package, **folder)[1] == []
