"""The runner of the suites: no test is forgotten, none counts twice, and a budget is kept."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("suite_runner", TESTS / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_test_file_belongs_to_one_suite(runner: ModuleType) -> None:
    folders = [Path(folder) for suite in runner.SUITES for share in runner.shares_of(suite) for folder in share]
    for path in TESTS.rglob("test_*.py"):
        assert [folder in path.parents for folder in folders].count(True) == 1, f"{path} is in no suite, or in two"


def test_test_files_have_names_of_their_own() -> None:
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert sorted(names) == sorted(dict.fromkeys(names))  # without packages, pytest tells modules apart by name


def write_tests(folder: Path, text: str) -> None:
    (folder / "sim").mkdir()
    (folder / "sim" / "test_example.py").write_text(text)


def test_outcomes_are_counted(runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tests(tmp_path, "def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): __import__('pytest').skip()\n")
    monkeypatch.setattr(runner, "TESTS", tmp_path)
    outcome = runner.run(runner.Suite(name="sim", budget_s=60, folders=("sim",)), ["-p", "no:cacheprovider"])
    assert (outcome.passed, outcome.failed, outcome.skipped, outcome.problem) == (1, 1, 1, "")


def test_unit_runs_in_two_processes_which_are_counted_together(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("cli", "def test_a(): pass\n"), ("storage", "def test_b(): pass\ndef test_c(): assert 0\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(text)
    monkeypatch.setattr(runner, "TESTS", tmp_path)
    suite = next(suite for suite in runner.SUITES if suite.name == "unit")
    assert runner.shares_of(suite) == [[str(tmp_path / "cli")], [str(tmp_path / "storage")]]
    outcome = runner.run(suite, ["-p", "no:cacheprovider"])
    assert (outcome.passed, outcome.failed, outcome.problem) == (2, 1, "")
    assert "FAILED" in capsys.readouterr().out  # what the second one says is not lost


def test_a_suite_without_tests_is_a_failure(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tests(tmp_path, "")
    monkeypatch.setattr(runner, "TESTS", tmp_path)
    outcome = runner.run(runner.Suite(name="sim", budget_s=60, folders=("sim",)), ["-p", "no:cacheprovider"])
    assert (outcome.failures, outcome.problem) == (1, "no test ran")


def test_a_suite_is_stopped_at_the_end_of_its_budget(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tests(tmp_path, "import threading\ndef test_a(): threading.Event().wait()\n")
    monkeypatch.setattr(runner, "TESTS", tmp_path)
    started = time.monotonic()
    outcome = runner.run(runner.Suite(name="sim", budget_s=2, folders=("sim",)), ["-p", "no:cacheprovider"])
    assert outcome.problem == "over its budget of 2 s" and outcome.failures == 1
    assert time.monotonic() - started < 2 + runner.INTERRUPT_GRACE_S + 5
