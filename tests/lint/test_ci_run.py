"""`.ci/run` with a fake `dev`: what it counts, which leftovers it finds, and what it removes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from quorumlog.testing.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
RUN_S = 60.0
LINGER = "setsid sleep 1000 >/dev/null 2>&1 & echo $! >>{pids}"
SUMMARY = 'for file; do :; done; echo "{} {}" >"$file"'  # the last word of a command is the file to count in
OF_REST = 'if [ "$2" = rest ]; then {}; else {}; fi'
FIVE = SUMMARY.format(5, 0)
CASES = [
    ("all is well", {}, "18 passed, 0 failed", 0),
    ("a test fails", {"test": SUMMARY.format(4, 1) + "; exit 1"}, "14 passed, 4 failed", 1),
    (
        "a test of the rest fails",
        {"test": OF_REST.format(SUMMARY.format(4, 1) + "; exit 1", FIVE)},
        "16 passed, 2 failed",
        1,
    ),
    ("the tests end without counting", {"test": "exit 0"}, "6 passed, 2 failed", 1),
    (
        "the rest runs in the environment of the tests",
        {"test": OF_REST.format(f"test -e made && {FIVE}", f"touch made; {FIVE}")},
        "18 passed, 0 failed",
        0,
    ),
    (
        "ports are locked for the machine",
        {"demo": 'test "$(readlink -f "$TMPDIR"/quorumlog-ports-*)" -ef {locks}'},
        "18 passed, 0 failed",
        0,
    ),
    ("the check fails", {"check": "exit 1"}, "17 passed, 1 failed", 1),
    ("the demo fails", {"demo": "exit 3"}, "17 passed, 1 failed", 1),
    ("the demo leaves a process", {"demo": LINGER}, "17 passed, 1 failed", 1),
    ("the tests leave a process", {"test": OF_REST.format(FIVE, LINGER + "; " + FIVE)}, "17 passed, 1 failed", 1),
    ("an environment comes with the checkout", {"demo": "test ! -e .venv"}, "18 passed, 0 failed", 0),
]
WELL = {"check": "true", "demo": "true", "test": FIVE}


def repository(folder: Path, verbs: dict[str, str]) -> Path:
    """A checkout with our `.ci/run`, a `dev` whose verbs run given commands, and an environment not in git."""
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    cases = "\n".join(f"{verb}) {what} ;;" for verb, what in verbs.items())
    (folder / "dev").write_text(f'#!/bin/sh\ncase "$1" in\n{cases}\nesac\n')
    (folder / "dev").chmod(0o755)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=n", "-c", "user.email=n@localhost", "commit", "--quiet", "-m", "All")
    (folder / ".venv").mkdir()
    return folder


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=RUN_S)


def filled(what: str, places: dict[str, str]) -> str:
    for name, path in places.items():
        what = what.replace(name, path)
    return what


def left_in(folder: Path) -> list[Path]:
    """What a run has forgotten to remove. The folder of the locks on ports is the machine's."""
    return [path for path in folder.iterdir() if not path.name.startswith("quorumlog-ports-")]


def runs(pid: int) -> bool:
    """False for a process that has ended, even if its parent has not waited for it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(("verbs", "want", "code"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_ci(tmp_path: Path, verbs: dict[str, str], want: str, code: int) -> None:
    pids = tmp_path / "pids"
    places = {"{pids}": str(pids), "{locks}": str(tmp_path / "tmp" / f"quorumlog-ports-{os.getuid()}")}
    checkout = repository(
        tmp_path / "checkout", {verb: filled(what, places) for verb, what in {**WELL, **verbs}.items()}
    )
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [checkout / ".ci" / "run"],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert (done.stdout.splitlines()[-1], done.returncode) == (want, code), done.stdout + done.stderr
    assert left_in(tmp_path / "tmp") == []
    left = pids.read_text().split() if pids.exists() else []
    assert len(left) == (1 if LINGER in "".join(verbs.values()) else 0)
    assert not any(runs(int(pid)) for pid in left)


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    waits = f'echo $$ >"{tmp_path}/pid"; exec sleep 1000'
    checkout = repository(tmp_path / "checkout", {**WELL, "demo": waits})
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen([checkout / ".ci" / "run"], env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), RUN_S, "the demo to run")
    process.send_signal(signal.SIGTERM)
    assert process.wait(RUN_S) == 130
    assert not runs(int((tmp_path / "pid").read_text()))
    assert left_in(tmp_path / "tmp") == []
