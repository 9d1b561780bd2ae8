"""The runner of the suites: no test is forgotten, none counts twice, budgets are kept, and what is flaky is named."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.testing.waiting import wait_until
from tests import parts
from tests.parts import ALSO_QUICK, LEFT_OUT, NIGHTLY, SAMPLED, WHOLE_ONLY, Part, chosen, few

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
    folders = [Path(folder) for suite in runner.SUITES for folder in runner.folders_of(suite)]
    for path in TESTS.rglob("test_*.py"):
        assert [folder in path.parents for folder in folders].count(True) == 1, f"{path} is in no suite, or in two"


def test_test_files_have_names_of_their_own() -> None:
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert sorted(names) == sorted(dict.fromkeys(names))  # without packages, pytest tells modules apart by name


@pytest.fixture
def tried(runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs suites that consist of one file each: texts by the name of the suite. options: of each suite."""
    monkeypatch.setattr(runner, "TESTS", tmp_path)

    def run(texts: dict[str, str], part: str = "all", **options: Any) -> list[Any]:
        suites = []
        for number, (name, text) in enumerate(texts.items()):
            (tmp_path / name).mkdir()
            (tmp_path / name / f"test_example_{name}.py").write_text(text)
            lane = {"lane": f"lane {number}", "budget_s": 60, **options}
            suites.append(runner.Suite(name=name, folders=(name,), **lane))
        outcomes: list[Any] = runner.run(part, suites, [])
        return outcomes

    return run


def last(name: str) -> str:
    return name.rpartition("::")[2]


def test_outcomes_are_counted(tried: Any) -> None:
    text = "def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): __import__('pytest').skip()\n"
    (outcome,) = tried({"sim": text})
    assert (outcome.passed, outcome.failed, outcome.skipped, outcome.problem) == (1, 1, 1, "")
    assert [last(name) for name in outcome.failing] == ["test_b"] and outcome.flaky == ()


def test_lanes_run_side_by_side_and_what_each_suite_says_is_printed(
    tried: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = (
        "import pathlib, time\n"
        "def test_a():\n"
        "    pathlib.Path({own!r}).touch()\n"
        "    until = time.monotonic() + 50\n"
        "    while not pathlib.Path({other!r}).exists() and time.monotonic() < until: time.sleep(0.01)\n"
        "    assert pathlib.Path({other!r}).exists()\n"
        "    assert not {fails}, 'on purpose'\n"
    )
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    outcomes = tried(
        {
            "cli": waits.format(own=first, other=second, fails=False),
            "storage": waits.format(own=second, other=first, fails=True),
        }
    )
    assert [(one.name, one.passed, one.failed) for one in outcomes] == [("cli", 1, 0), ("storage", 0, 1)]
    told = capsys.readouterr().out
    assert "== cli" in told and "on purpose" in told


def test_a_test_that_passes_the_second_time_is_named_and_fails_all_the_same(
    runner: ModuleType, tried: Any, tmp_path: Path
) -> None:
    flag = str(tmp_path / "flag")
    text = (
        f"import pathlib\ndef test_a():\n    flag = pathlib.Path({flag!r})\n    was = flag.exists()\n    flag.touch()\n"
    )
    outcomes = tried({"live": f"{text}    assert was\ndef test_b(): assert 0\n"})
    assert (outcomes[0].failed, outcomes[0].failures) == (2, 2)
    assert [last(name) for name in outcomes[0].flaky] == ["test_a"]
    assert [last(name) for name in outcomes[0].failing] == ["test_b"]
    lines = runner.closing("all", [runner.SUITES[0]], outcomes, 1.0)
    assert lines[-1] == "0 passed, 2 failed"
    assert any(line.startswith("FLAKY ") and "test_a" in line for line in lines)
    assert any(line.startswith("FAILED ") and "test_b" in line for line in lines)


def test_a_suite_without_tests_is_a_failure_where_everything_should_run(tried: Any) -> None:
    (outcome,) = tried({"sim": ""})
    assert (outcome.failures, outcome.problem) == (1, "no test ran")


def test_a_suite_of_which_a_part_holds_nothing_is_none(runner: ModuleType, tried: Any) -> None:
    outcomes = tried({"sim": ""}, part="quick")
    assert outcomes[0].failures == 0
    assert "nothing of it" in runner.line_of(runner.SUITES[0], outcomes[0])


def test_a_suite_is_stopped_at_the_end_of_its_budget(
    runner: ModuleType, tried: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "INTERRUPT_GRACE_S", 2.0)
    started = time.monotonic()
    text = "import threading\ndef test_a(): threading.Event().wait()\n"
    (outcome,) = tried({"sim": text}, budget_s=2)
    assert outcome.problem == "over its budget of 2 s" and outcome.failures == 1
    assert time.monotonic() - started < 20


def test_seeds_that_failed_are_run_again_although_they_are_few(tried: Any, tmp_path: Path) -> None:
    """Chosen anew, the failed ones alone would be the first tenth of themselves."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    text = "import pytest\n@pytest.mark.parametrize('seed', range(20))\ndef test_a(seed): assert seed < 15\n"
    (outcome,) = tried({"storage": text})
    assert (outcome.passed, outcome.failed, len(outcome.failing), outcome.flaky) == (15, 5, 5, ())


ENDED = """
import sys
from pathlib import Path
from tests import run
run.TESTS = Path(sys.argv[1])
run.SUITES = tuple(run.Suite(name=name, budget_s=60, folders=("live",), lane="nodes") for name in ("first", "second"))
sys.exit(run.main(["all"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_suites_and_what_they_said_is_shown(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "live").mkdir()
    flag = tmp_path / "flag"
    (tmp_path / "live" / "test_example_live.py").write_text(
        "import pathlib, threading\ndef test_a(): pass\n"
        f"def test_b():\n    pathlib.Path({str(flag)!r}).touch()\n    threading.Event().wait()\n"
    )
    command = [sys.executable, "-c", ENDED, str(tmp_path)]
    with subprocess.Popen(command, cwd=TESTS.parent, stdout=subprocess.PIPE, text=True) as process:
        wait_until(flag.exists, 60, "the test that waits")
        process.send_signal(number)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and "interrupted" in told and "1 passed" in told
    assert [
        one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or ())
    ] == []


def test_what_python_has_compiled_is_kept(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for before, after in (({}, None), ({"PYTHONDONTWRITEBYTECODE": "1"}, str(TESTS.parent / "out" / "bytecode"))):
        monkeypatch.setattr(os, "environ", before)
        runner.keep_bytecode()
        assert os.environ.get("PYTHONPYCACHEPREFIX") == after and "PYTHONDONTWRITEBYTECODE" not in os.environ
    monkeypatch.setattr(os, "environ", {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "elsewhere"})
    runner.keep_bytecode()
    assert os.environ == {"PYTHONPYCACHEPREFIX": "elsewhere"}


def test_a_run_of_nothing_fails(runner: ModuleType) -> None:
    suites = runner.SUITES
    lines = runner.closing("rest", suites, [runner.Outcome(name=suite.name) for suite in suites], 1.0)
    assert lines[-2:] == ["1 s", "0 passed, 1 failed"] and "no test ran" in lines


def test_a_part_and_suites_are_chosen_by_name(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    def run(part: str, suites: list[Any], _options: list[str]) -> list[Any]:
        asked.append((part, [suite.name for suite in suites]))
        return [runner.Outcome(name=suite.name, passed=1) for suite in suites]

    monkeypatch.setattr(runner, "run", run)
    every = [suite.name for suite in runner.SUITES]
    for words in ([], ["rest"], ["all"], ["sim", "unit"], ["rest", "unit"]):
        assert runner.main(words) == 0
    assert asked == [
        ("quick", every), ("rest", every), ("all", every), ("everything", ["unit", "sim"]), ("rest", ["unit"])
    ]  # fmt: skip
    assert runner.main(["tests/lint/test_floor.py", "--", "-q", "--collect-only"]) == 0
    for refused in (["nothing"], ["quick", "rest"], ["tests/lint", "sim"]):
        with pytest.raises(SystemExit):
            runner.main(refused)


def test_quick_collects_only_the_files_that_it_has_something_of(runner: ModuleType) -> None:
    paths = [path for suite in runner.SUITES if suite.name != "unit" for path in runner.paths_of(suite, "quick")]
    wanted = {str(TESTS.parent / name.partition("::")[0]) for name in ALSO_QUICK}
    assert sorted(paths) == sorted({*wanted, str(TESTS / "formats")})
    assert all(runner.paths_of(suite, "rest") == runner.folders_of(suite) for suite in runner.SUITES)


# --- the parts ---


@dataclass(frozen=True)
class FakeSpec:
    params: dict[str, object]


@dataclass(frozen=True)
class FakeItem:
    nodeid: str
    keywords: tuple[str, ...] = ()
    callspec: FakeSpec = field(default_factory=lambda: FakeSpec({}))


def cases(function: str, count: int, parameter: str = "case", keywords: tuple[str, ...] = ()) -> list[FakeItem]:
    return [FakeItem(f"{function}[{n}]", keywords, FakeSpec({parameter: n})) for n in range(count)]


def names(items: list[FakeItem], part: Part) -> list[str]:
    return [item.nodeid for item, is_taken in zip(items, chosen(items, part), strict=True) if is_taken]


FOLDERS = st.sampled_from(["storage", "quorum/raft", "broker/fetch", *WHOLE_ONLY])
FUNCTIONS = st.builds("tests/{}/test_{}.py::test_{}".format, FOLDERS, st.sampled_from("ab"), st.integers(0, 3))
LISTED = st.sampled_from(sorted({name.partition("[")[0] for name in (*LEFT_OUT, *NIGHTLY, *SAMPLED)}))
SOME_CASES = st.builds(
    cases,
    FUNCTIONS | LISTED,
    st.integers(1, 45),
    st.sampled_from(["seed", "block", "case"]),
    st.sampled_from([(), ("is_hypothesis_test",), ("counts",)]),
)


@given(st.lists(SOME_CASES, unique_by=lambda some: some[0].nodeid.partition("[")[0]))
def test_both_parts_together_are_everything_but_the_night(groups: list[list[FakeItem]]) -> None:
    items = [item for group in groups for item in group]
    quick, rest = names(items, Part.QUICK), names(items, Part.REST)
    every, nightly = {item.nodeid for item in items}, {*names(items, Part.NIGHTLY)}
    counts = {item.nodeid for item in items if item.keywords}
    assert {*quick, *rest} == set(names(items, Part.ALL)) and {*quick, *rest, *nightly} == every
    assert {*names(items, Part.EVERYTHING)} == every
    assert {*quick, *rest} & nightly <= counts, "only what counts is in the night, too"
    tables = tuple(function for function, is_nightly in SAMPLED.items() if is_nightly)
    assert all(name.startswith((*NIGHTLY, *tables)) for name in nightly - counts)
    twice = {item.nodeid for item in items if item.keywords or item.nodeid.startswith(ALSO_QUICK)}
    assert {*quick} & {*rest} <= twice, "all else runs once"
    for group in groups:
        function = group[0].nodeid.partition("[")[0]
        is_left_out = function.split("/")[1] in WHOLE_ONLY or function.startswith((*LEFT_OUT, *NIGHTLY))
        assert is_left_out or any(name.startswith(function) for name in quick), "every other function is quick"


def test_a_tenth_of_the_seeds_is_quick_and_the_others_are_in_the_rest() -> None:
    items = cases("tests/storage/test_a.py::test_b", 25, "seed")
    assert names(items, Part.QUICK) == [item.nodeid for item in items[:3]]
    assert names(items, Part.REST) == [item.nodeid for item in items[3:]]


def test_a_tenth_of_what_is_counted_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "CHOSEN", Part.QUICK)
    assert [few(whole) for whole in (1, 10, 11, 300)] == [1, 1, 2, 30]
    monkeypatch.setattr(parts, "CHOSEN", Part.REST)
    assert [few(whole) for whole in (1, 10, 300)] == [1, 2, 60]
    for part in (Part.NIGHTLY, Part.ALL, Part.EVERYTHING):
        monkeypatch.setattr(parts, "CHOSEN", part)
        assert few(300) == 300


@pytest.mark.parametrize("name", [*LEFT_OUT, *NIGHTLY, *SAMPLED, *ALSO_QUICK])
def test_every_exception_names_what_is_there(name: str) -> None:
    path, _, function = name.partition("[")[0].partition("::")
    text = (TESTS.parent / path).read_text()
    assert not function or re.search(rf"^(async )?def {function}", text, re.M), f"{name} is gone"
