"""`./dev nightly` with real processes and real files, and kinds of work that are a few lines of Python.

`python -m tests.jepsen.test_nightly_processes FOLDER OPTIONS...` is a night of these kinds.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from jepsen.nightly import command as nightly_command
from jepsen.nightly import machine as nightly_machine
from jepsen.nightly.files import STATE, locked, read_state
from jepsen.nightly.work import Command, Work
from jepsen.tree import ROOT, runs_from
from quorumlog.testing.waiting import wait_until
from tests.jepsen.ended_processes import has_ended

LIMIT_S = 30.0  # for whatever is waited for
GOOD = "print('all is well')"
BAD = "import sys; print('what was promised is broken'); print('replay: ./dev sing --seed 7'); sys.exit(1)"
FOREVER = """
import signal, subprocess, sys, time
from pathlib import Path
folder = Path({folder!r})
if {stubborn!r}:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
node = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
(folder / "pids.tmp").write_text(f"{{__import__('os').getpid()}} {{node.pid}}")
(folder / "pids.tmp").rename(folder / "pids")
time.sleep(1000)
"""


def works_of(*kinds: tuple[str, str], slices: int = 1, limit_s: float = 60.0) -> Callable[..., Sequence[Work]]:
    """kinds: names, and the program of each."""

    def make(*_: object) -> Sequence[Work]:
        def work(name: str, program: str) -> Work:
            return Work(
                name=name, covers="nothing", unit="runs", whole=slices, slice=1, limit_s=limit_s,
                command=lambda first, _: (program, str(first)),
            )  # fmt: skip

        return [work(*kind) for kind in kinds]

    return make


def argv(command: Command) -> list[str]:
    return [sys.executable, "-c", *command]


def options_of(folder: Path, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    nightly_command.add_arguments(parser)
    return parser.parse_args(["--folder", str(folder), *words])


def run(folder: Path, works: Callable[..., Sequence[Work]], *words: str) -> int:
    return nightly_command.nightly(options_of(folder, *words), works, argv)


@pytest.fixture(autouse=True)
def _commit_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may change this tree while its tests run."""
    monkeypatch.setattr(nightly_machine, "commit_of_tree", lambda _: "aaa")
    monkeypatch.setattr(nightly_command, "commit_of_tree", lambda _: "aaa")


# --- exit codes, and what is kept ---


def test_a_night_in_which_all_is_well_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, works_of(("good", GOOD), slices=2)) == 0
    assert (tmp_path / "slices" / "00002-good.txt").read_text() == "all is well\n"
    assert "slices: nothing found." in (tmp_path / "report.md").read_text()
    assert "every chosen kind is done for this round" in capsys.readouterr().out


def test_a_finding_is_in_the_report_with_its_replay_until_somebody_says_that_it_is_fixed(tmp_path: Path) -> None:
    works = works_of(("bad", BAD), ("good", GOOD))
    assert run(tmp_path, works) == 1
    text = (tmp_path / "report.md").read_text()
    assert "    ./dev sing --seed 7\n" in text and "what was promised is broken" in text
    assert f"`{tmp_path}/slices/00001-bad.txt`" in text and "`aaa`" in text
    assert run(tmp_path, works, "--only", "good") == 1, "found earlier, and not fixed"
    assert run(tmp_path, works, "--fixed", "7") == 2
    assert run(tmp_path, works, "--fixed", "1") == 0
    assert run(tmp_path, works, "--only", "good") == 0
    assert "fixed at `aaa`" in (tmp_path / "report.md").read_text()


def test_another_file_for_the_report(tmp_path: Path) -> None:
    run(tmp_path, works_of(("good", GOOD)), "--report", str(tmp_path / "pages" / "night.md"))
    assert (tmp_path / "pages" / "night.md").exists() and not (tmp_path / "report.md").exists()


def test_a_slice_that_does_not_end_is_ended_and_is_a_finding(tmp_path: Path) -> None:
    assert (
        run(tmp_path, works_of(("late", "import time; print('begun', flush=True); time.sleep(1000)"), limit_s=2)) == 1
    )
    text = (tmp_path / "report.md").read_text()
    assert "did not end within 2 s" in text and "begun" in text


def test_the_list_runs_nothing_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none", works_of(("good", GOOD), slices=3), "--list") == 0
    assert "good: 3 of 3 runs left" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_fresh_forgets_what_was_found_and_seeds_go_on(tmp_path: Path) -> None:
    assert run(tmp_path, works_of(("bad", BAD), slices=2)) == 1
    assert run(tmp_path, works_of(("bad", GOOD), slices=2), "--fresh") == 0
    state = read_state(tmp_path)
    assert state is not None and state.findings == [] and state.of("bad").next == 4
    before = read_state(tmp_path / "before-1")
    assert before is not None and len(before.findings) == 1
    assert (tmp_path / "before-1" / "slices" / "00001-bad.txt").exists()


@pytest.mark.parametrize("words", [(), ("--list",), ("--fixed", "1")], ids=["run", "list", "fixed"])
def test_a_damaged_state_is_refused_and_kept(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, works_of(("bad", BAD)))
    (tmp_path / STATE).write_text('{"version": 1, "commit"')
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert run(tmp_path, works_of(("bad", BAD)), *words) == 2
    told = capsys.readouterr().err
    assert str(tmp_path / STATE) in told and "damaged" in told and "--fresh" in told
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_fresh_keeps_a_damaged_state_aside(tmp_path: Path) -> None:
    (tmp_path / STATE).write_text("{")
    assert run(tmp_path, works_of(("good", GOOD)), "--fresh") == 0
    assert (tmp_path / "before-1" / STATE).read_text() == "{"


def test_bad_arguments_end_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, works_of(("good", GOOD)), "--only", "bad") == 2
    assert "'bad' is none of good" in capsys.readouterr().err
    for words in (("--minutes", "0"), ("--minutes", "nan"), ("--processes", "0"), ("--fixed", "x")):
        with pytest.raises(SystemExit) as refused:
            options_of(tmp_path, *words)
        assert refused.value.code == 2


def test_two_nights_in_one_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(tmp_path):
        assert run(tmp_path, works_of(("good", GOOD))) == 2
    assert "another night runs" in capsys.readouterr().err


def test_a_commit_on_the_way_begins_the_process_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs then, sees the new commit's table."""
    commits = iter(["aaa", "aaa", "bbb"])
    began: list[list[str]] = []
    monkeypatch.setattr(nightly_machine, "commit_of_tree", lambda _: next(commits))
    monkeypatch.setattr(os, "execv", lambda _, words: began.append(words))
    run(tmp_path, works_of(("good", GOOD), slices=3), "--minutes", "60", "--only", "good")
    ((_, *words),) = began
    assert words[:3] == ["-m", "jepsen", "nightly"]
    again = options_of(tmp_path, *words[3:])
    assert again.folder == tmp_path and again.only == ["good"] and 59 < again.minutes <= 60 and not again.fresh
    state = read_state(tmp_path)
    assert state is not None and state.slices == 1


def test_the_commit_tells_changes_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(nightly_machine, "ROOT", tmp_path)
    report = tmp_path / "report.md"
    commit = partial(nightly_machine.commit_of_tree, report)
    assert commit() == nightly_machine.NO_COMMIT
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("1")
    report.write_text("none yet")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    first = commit()
    report.write_text("what the night writes itself")
    assert commit() == first
    (tmp_path / "file").write_text("2")
    second = commit()
    (tmp_path / "file").write_text("3")
    assert first.isalnum() and second.startswith(f"{first}+") and commit() not in (first, second)


# --- ends ---


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Callable[[bool], tuple[subprocess.Popen[bytes], list[psutil.Process]]]]:
    """Begins a night whose slice never ends. Returns its process, and those of the slice."""
    begun: list[subprocess.Popen[bytes]] = []
    theirs: list[psutil.Process] = []

    def begin(stubborn: bool) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
        words = [str(tmp_path / "nights"), "--report", str(tmp_path / "report.md")]
        program = FOREVER.format(folder=str(tmp_path), stubborn=stubborn)
        with (tmp_path / "told").open("wb") as told:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.jepsen.test_nightly_processes", *words],
                env={**runs_from(ROOT, os.environ), "FOREVER": program}, stdout=told,
            )  # fmt: skip
        begun.append(process)
        until(lambda: (tmp_path / "pids").exists() or process.poll() is not None)
        theirs.extend(psutil.Process(int(pid)) for pid in (tmp_path / "pids").read_text().split())
        return process, theirs

    yield begin
    for process in begun:
        process.kill()
        process.wait()
    for one in theirs:
        if one.is_running():
            one.kill()


def until(holds: Callable[[], bool]) -> None:
    wait_until(holds, LIMIT_S, "the processes")


ENDS = [
    ("SIGTERM", [signal.SIGTERM], False),
    ("SIGINT", [signal.SIGINT], False),
    ("SIGTERM twice, and the slice does not listen", [signal.SIGTERM, signal.SIGTERM], True),
    ("SIGKILL", [signal.SIGKILL], False),
    ("SIGKILL, and the slice does not listen", [signal.SIGKILL], True),
]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="a node in a group of its own is found by /proc")
@pytest.mark.parametrize(("signals", "stubborn"), [one[1:] for one in ENDS], ids=[one[0] for one in ENDS])
def test_no_process_of_a_slice_outlives_the_night(
    signals: list[signal.Signals],
    stubborn: bool,
    night: Callable[[bool], tuple[subprocess.Popen[bytes], list[psutil.Process]]],
    tmp_path: Path,
) -> None:
    """Neither the slice, nor the node that it has started in a session of its own. The slice is lost, the rest kept."""
    process, theirs = night(stubborn)
    assert len(theirs) == 2 and not any(has_ended(one) for one in theirs)
    for number in signals:
        process.send_signal(number)
        if number != signal.SIGKILL:
            until(lambda: "ends the slice under way" in (tmp_path / "told").read_text())
    code = process.wait(LIMIT_S)
    until(lambda: all(has_ended(one) for one in theirs))
    assert code == (-signal.SIGKILL if signals == [signal.SIGKILL] else 0)
    state = read_state(tmp_path / "nights")
    assert state is not None and state.slices == 1 and state.of("good").done == 1 and state.of("forever").done == 0
    with locked(tmp_path / "nights"):
        pass  # nobody holds it any more


def main() -> int:
    works = works_of(("good", GOOD), ("forever", os.environ["FOREVER"]))
    return run(Path(sys.argv[1]), works, *sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
