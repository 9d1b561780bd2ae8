"""`./dev` before it has an environment: what it lists, what it refuses, and what it says then."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERBS = ["setup", "demo", "test", "check", "proto", "docs", "sim", "swarm", "bench"]
VERBS += ["applications", "mutants", "crash-sweep", "live", "controller-loop", "transactions", "pipeline"]
VERBS += ["drill", "soak", "fuzz", "fuzz-parsers", "spark-versions", "differential", "nightly"]


def dev(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "dev"), *arguments],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_alone_it_lists_its_verbs() -> None:
    listed = [line.split()[0] for line in dev().stdout.splitlines() if line.startswith("  ")]
    assert listed == VERBS


def test_an_unknown_verb_is_refused() -> None:
    done = dev("sing")
    assert done.returncode == 2 and "no such verb: sing" in done.stderr


def test_a_python_that_is_too_old_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$*" in --version) echo Python 3.10.4;; *) exit 1;; esac\n')
    old.chmod(0o755)
    done = dev("setup", PYTHON=str(old), QUORUMLOG_VENV=str(tmp_path / "venv"))
    assert done.returncode == 2 and "Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    done = dev("setup", QUORUMLOG_VENV=str(tmp_path))
    assert done.returncode == 2 and "no virtual environment" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_without_a_way_to_make_an_environment_it_names_the_package(tmp_path: Path) -> None:
    """A Python as Debian ships it: new enough, and its venv module is in another package."""
    bare = tmp_path / "python3"
    bare.write_text(
        '#!/bin/sh\ncase "$2" in\n'
        '*"import venv"*|*"import virtualenv"*) exit 1;; *print*) echo 3.12;; *) exit 0;;\nesac\n'
    )
    bare.chmod(0o755)
    done = dev("setup", PYTHON=str(bare), QUORUMLOG_VENV=str(tmp_path / "venv"), PATH="/usr/bin:/bin")
    assert done.returncode == 2 and "python3.12-venv" in done.stderr


@pytest.mark.parametrize("fails", ["", "mypy", "lint-imports"])
def test_the_check_fails_with_any_of_its_steps(tmp_path: Path, fails: str) -> None:
    """The types are checked beside the other steps, and their failure is told with what they said."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").touch()
    for name in ("python", "ruff", "mypy", "lint-imports"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho said by {name}\nexit {int(name == fails)}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    asked = '{ cat pyproject.toml; echo "$PWD"; } | cksum'
    stamp = subprocess.run(["sh", "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (tmp_path / ".quorumlog-dev").write_text(stamp)
    done = dev("check", QUORUMLOG_VENV=str(tmp_path), TMPDIR=str(tmp_path))
    step = {"": "", "mypy": "types", "lint-imports": "imports"}[fails]
    assert done.returncode == (1 if fails else 0), done.stderr
    assert ("ok    types" in done.stdout) is (fails != "mypy")
    assert [line for line in done.stdout.splitlines() if line.startswith(("FAIL", "failed"))] == (
        [f"FAIL  {step}", f"failed: {step}"] if fails else []
    )
    assert (f"said by {fails}" in done.stdout) is bool(fails)
    assert not list(tmp_path.glob("tmp*"))
