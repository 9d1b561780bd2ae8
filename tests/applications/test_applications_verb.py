"""`./dev applications`: what it prints and returns for applications that pass, fail, and cannot be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from applications import __main__ as verb
from applications.application import Application, Stage
from applications.environments import Unavailable
from applications.running import Failed, Process


def does_nothing(_stage: Stage) -> None:
    pass


def fails(stage: Stage) -> None:
    command = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]
    with Process(command, log=stage.folder / "log") as process:
        process.until(lambda: "ready" in process.tail(), "it is ready", 30)
        process.until(lambda: False, "it has done its work", 0.3)


def ends(stage: Stage) -> None:
    with Process([sys.executable, "-c", "print('no cluster'); exit(3)"], log=stage.folder / "log") as process:
        process.until(lambda: False, "it has done its work", 30)


def cannot_be_had(_cache: Path) -> None:
    raise Unavailable("pip could not install it")


class NoCluster:
    def __init__(self, _folder: Path, nodes: int) -> None:
        assert nodes == 1

    def __enter__(self) -> NoCluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def applications(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "good": Application("good", "does nothing", lambda _: None, does_nothing),
        "slow": Application("slow", "is too slow", lambda _: None, fails),
        "broken": Application("broken", "ends", lambda _: None, ends),
        "missing": Application("missing", "cannot be had", cannot_be_had, does_nothing),
    }
    monkeypatch.setattr(verb, "APPLICATIONS", found)
    monkeypatch.setattr(verb, "Cluster", NoCluster)


def test_what_passes_and_what_cannot_be_had_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert verb.main(["good", "missing", "--nodes", "1"]) == 0
    said = capsys.readouterr().out
    assert "good: does nothing ...\ngood: passed in 0 s" in said
    assert "missing: skipped: pip could not install it" in said
    assert said.endswith("1 passed, 0 failed, 1 skipped\n")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("slow", "not within 0.3 s: it has done its work"), ("broken", "it ended with 3 before it has done its work")],
)
def test_a_failure_says_what_did_not_happen_and_shows_the_log(
    name: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb.main([name, "--nodes", "1"]) == 1
    said = capsys.readouterr().out
    assert f"{name}: failed: {reason}" in said and ("ready" if name == "slow" else "no cluster") in said


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        verb.main(["nothing"])
    assert exited.value.code == 2
    assert "no such application: nothing; there are good, slow, broken, missing" in capsys.readouterr().err


def test_a_program_that_fails_is_told_with_its_code(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="it ended with 4"):
        Process([sys.executable, "-c", "exit(4)"], log=tmp_path / "log").wait(30)
