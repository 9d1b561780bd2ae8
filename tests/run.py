"""Runs the tests: `python -m tests.run [PART | SUITE ... | TEST ...] [-- PYTEST OPTIONS]`.

A part is `quick` (the default), `rest` (what quick leaves out), `all` (both) or `nightly`: tests/parts.py says what
belongs to each. A suite is a set of folders below tests/, and is run whole, with what is nightly of it; what no other
suite claims belongs to `unit`, so no test is forgotten.

Suites run in lanes, side by side, so that no processor waits: those of one lane one after the other. The lane
`processors` takes all the time that the lanes of real nodes leave, and gives way to them (nice), because nodes have
time limits. Each suite is one pytest process in a session of its own, with a budget of time; at its end it is
interrupted, which prints where it was, and counts as failed. What a suite prints comes when it has ended.

A test that failed is run again at once, by itself: one that then passes is named as flaky, and fails the run all the
same. Ctrl-C and SIGTERM interrupt pytest, which ends what its tests have started, and show how far it was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.parts import ALSO_QUICK, NIGHTLY, PART, PROCESSOR, TOLD, WHOLE_ONLY

TESTS = Path(__file__).resolve().parent
INTERRUPT_GRACE_S = 15.0  # for pytest's own report after an interrupt
AGAIN_S = 240  # for all failed tests of a suite, run again
MOST_AGAIN = 20  # failed tests; where more fail, it is no accident
PROGRESS_S = 30.0
NO_TESTS = 5  # pytest's exit code
NICE = 10  # of the lane that gives way
PATIENT_S = 300  # for one of its tests, if the test itself says nothing; the others have 120
PROCESSORS, NODES, CLIENTS = "processors", "nodes", "clients"  # the lanes
NO_BYTECODE, BYTECODE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"  # environment variables of Python
OWN_PATH = "tests/"  # how the name of a file or of a test begins
PARTS = ("quick", "rest", "all", "nightly")
RUNNING: dict[str, subprocess.Popen[bytes]] = {}  # pytest, by suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """folders: below tests/; for `unit`, those that it leaves to the others. options: of pytest."""

    name: str
    budget_s: int
    folders: tuple[str, ...]
    lane: str
    options: tuple[str, ...] = ()


OTHERS = (
    Suite(name="formats", budget_s=15 * 60, folders=("formats",), lane=PROCESSORS),
    Suite(name="crash", budget_s=15 * 60, folders=("crash",), lane=PROCESSORS),
    Suite(name="sim", budget_s=25 * 60, folders=("sim", "soak"), lane=PROCESSORS),
    Suite(name="install", budget_s=8 * 60, folders=("install",), lane=PROCESSORS),
    Suite(name="applications", budget_s=8 * 60, folders=("applications",), lane=NODES),
    Suite(name="clients", budget_s=12 * 60, folders=("clients",), lane=CLIENTS),
    Suite(name="spark", budget_s=15 * 60, folders=("spark",), lane=CLIENTS),
    Suite(name="faults", budget_s=12 * 60, folders=("faults",), lane=NODES),
    Suite(name="live", budget_s=30 * 60, folders=("live",), lane=NODES),
)
CLAIMED = tuple(folder for suite in OTHERS for folder in suite.folders)
UNIT = Suite(
    name="unit", budget_s=40 * 60, folders=CLAIMED, lane=PROCESSORS, options=("-n", "2", "--dist", "worksteal")
)
SUITES = (UNIT, *OTHERS)  # in each lane what fails oftenest and soonest comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one suite did. left_out: tests of its folders that are in the other part. failing: those that failed, and
    failed again; flaky: those that passed then. problem: why it failed, beyond failed tests; empty for none.
    processor_s: of all its processes that ended by themselves.
    """

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    left_out: int = 0
    processor_s: int = 0
    took_s: float = 0.0
    problem: str = ""
    failing: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        """Failed tests, and one for a problem that no test stands for."""
        return self.failed or (1 if self.problem else 0)


@dataclass(slots=True)
class Run:
    """One run over suites. `begun` and `ended` are for the line that shows the progress."""

    part: str
    options: list[str]
    folder: Path
    begun: dict[str, float] = field(default_factory=dict)
    is_ended: bool = False
    printing: threading.Lock = field(default_factory=threading.Lock)

    def lane(self, suites: Iterable[Suite]) -> list[Outcome]:
        return [Outcome(name=suite.name) if self.is_ended else self.suite(suite) for suite in suites]

    def end(self) -> None:
        """Interrupt what runs; lanes begin nothing more."""
        self.is_ended = True
        for process in list(RUNNING.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)

    def suite(self, suite: Suite) -> Outcome:
        """Run one suite to its end or to that of its budget, then print what it said."""
        paths = paths_of(suite, self.part)
        if not paths:
            return Outcome(name=suite.name)
        started = self.begun[suite.name] = time.monotonic()
        report, output = self.folder / f"{suite.name}.xml", self.folder / suite.name
        own = [*self._pytest(suite), f"--junitxml={report}", "--durations=40", *suite.options, *self.options, *paths]
        code, in_time = self._within(suite, own, suite.budget_s, output)
        outcome = self._outcome(suite, report, code, in_time)
        if outcome.failed and not self.is_ended:
            outcome = self._again(suite, outcome, paths)
        del self.begun[suite.name]
        outcome = replace(outcome, took_s=time.monotonic() - started)
        if outcome.passed or outcome.failures or outcome.skipped:
            with self.printing:
                print(f"== {suite.name}\n{output.read_text(errors='replace')}", flush=True)
        return outcome

    def _pytest(self, suite: Suite) -> list[str]:
        own = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={self.folder / 'cache'}-{suite.name}"]
        if suite.lane != PROCESSORS:
            return own
        return ["nice", "-n", str(NICE), *own, "-o", f"timeout={PATIENT_S}"]

    def _again(self, suite: Suite, outcome: Outcome, paths: Sequence[str]) -> Outcome:
        """Run what failed a second time, to tell what is flaky."""
        failed = self._last_failed(suite)
        if not 0 < len(failed) <= MOST_AGAIN:
            return replace(outcome, failing=tuple(failed))
        own = [*self._pytest(suite), "--last-failed", "--last-failed-no-failures=none", *self.options, *paths]
        self._within(suite, own, AGAIN_S, self.folder / f"{suite.name}-again")
        failing = self._last_failed(suite)
        flaky = tuple(name for name in failed if name not in failing)
        return replace(outcome, failing=tuple(failing), flaky=flaky)

    def _last_failed(self, suite: Suite) -> list[str]:
        """As pytest's cache holds it."""
        path = self.folder / f"cache-{suite.name}" / "v" / "cache" / "lastfailed"
        return sorted(json.loads(path.read_text())) if path.exists() else []

    def _within(self, suite: Suite, command: list[str], budget_s: float, output: Path) -> tuple[int, bool]:
        """Run in a session of its own: (exit code, ended within the budget). Nothing of its process group is left."""
        own = {PART: self.part, TOLD: str(self._left_out(suite))}
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=TESTS.parent, env=os.environ | own, start_new_session=True,
                stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
        RUNNING[suite.name] = process
        try:
            return process.wait(budget_s), True
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                return process.wait(INTERRUPT_GRACE_S), False
            except subprocess.TimeoutExpired:
                return -signal.SIGKILL, False
        finally:
            _kill_group(process)

    def _left_out(self, suite: Suite) -> Path:
        """Where tests/conftest.py writes how many tests the part leaves out, and beside it the time of processors."""
        return self.folder / f"{suite.name}-left-out"

    def _outcome(self, suite: Suite, report: Path, code: int, in_time: bool) -> Outcome:
        passed, failed, skipped = _counts(report)
        problem = ""
        if self.is_ended:
            problem = "interrupted"
        elif not in_time:
            problem = f"over its budget of {suite.budget_s} s"
        elif code == NO_TESTS and self.part in ("all", "everything"):
            problem = "no test ran"
        elif code not in (0, NO_TESTS) and not failed:
            problem = f"pytest ended with {code}"
        left_out = self._left_out(suite)
        processor = left_out.with_name(left_out.name + PROCESSOR)
        return Outcome(
            name=suite.name, passed=passed, failed=failed, skipped=skipped, problem=problem,
            left_out=_number_in(left_out), processor_s=_number_in(processor),
        )  # fmt: skip

    def progress(self) -> str:
        """Of each suite that runs: how far it is, and for how long it has run."""
        found = []
        for name, started in list(self.begun.items()):
            path = self.folder / name
            shown = re.findall(r"\[ *(\d+%)\]", path.read_text(errors="replace")) if path.exists() else []
            found.append(f"{name} {shown[-1] if shown else '0%'} after {time.monotonic() - started:.0f} s")
        return ", ".join(found)


def paths_of(suite: Suite, part: str) -> list[str]:
    """What to hand to pytest: folders, or of the quick part the few files of a folder that it has some tests of."""
    folders = folders_of(suite)
    if part != "quick" or not _is_of_few(suite):
        return folders
    files = dict.fromkeys(TESTS.parent / name.partition("::")[0] for name in ALSO_QUICK)
    return [str(file) for file in files if str(file.parent) in folders]


def _is_of_few(suite: Suite) -> bool:
    """Whether quick has a few tests of it only."""
    return suite.name != UNIT.name and set(suite.folders) <= set(WHOLE_ONLY)


def folders_of(suite: Suite) -> list[str]:
    """Those that hold a test."""
    if suite.name == UNIT.name:
        folders = sorted(path for path in TESTS.iterdir() if path.name not in CLAIMED and path.name[0] not in "._")
    else:
        folders = [TESTS / name for name in suite.folders]
    return [str(path) for path in folders if path.is_dir() and any(path.rglob("test_*.py"))]


def run(part: str, suites: Sequence[Suite], options: list[str], progress_s: float = PROGRESS_S) -> list[Outcome]:
    """The outcomes, in the order of the suites."""
    lanes = {suite.lane: [one for one in suites if one.lane == suite.lane] for suite in suites}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(lanes)) as threads:
        ours = Run(part, options, Path(folder))
        pending = [threads.submit(ours.lane, lane) for lane in lanes.values()]
        quiet = threading.Event()
        teller = threading.Thread(target=_tell, args=(ours, quiet, progress_s))
        teller.start()
        try:
            outcomes = {one.name: one for lane in pending for one in _result(lane, ours)}
        finally:
            quiet.set()
            teller.join()
    return [outcomes[suite.name] for suite in suites]


def _tell(ours: Run, quiet: threading.Event, progress_s: float) -> None:
    while not quiet.wait(progress_s):
        told = ours.progress()
        with ours.printing:
            print(f"-- {told}", flush=True)


def _result(lane: Future[list[Outcome]], ours: Run) -> list[Outcome]:
    """Waits for it. An interrupt ends all lanes, and is no reason not to say what they did."""
    while True:
        try:
            return lane.result()
        except KeyboardInterrupt:
            ours.end()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # the usual case: all of the group has ended
    process.wait()


def _number_in(path: Path) -> int:
    """0 where there is no such file."""
    return int(path.read_text()) if path.exists() else 0


def _counts(report: Path) -> tuple[int, int, int]:
    """(passed, failed, skipped) of pytest's report; zeros where it wrote none."""
    if not report.exists():
        return 0, 0, 0
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    passed = failed = skipped = 0
    for one in suites:
        bad, left_out = int(one.get("failures", 0)) + int(one.get("errors", 0)), int(one.get("skipped", 0))
        failed, skipped = failed + bad, skipped + left_out
        passed += max(0, int(one.get("tests", 0)) - bad - left_out)
    return passed, failed, skipped


def line_of(suite: Suite, outcome: Outcome) -> str:
    """One suite's line of the closing table."""
    if not (outcome.passed or outcome.failures or outcome.skipped):
        return f"{suite.name:<12} nothing of it is in this part"
    verdict = "FAIL" if outcome.failures else "ok"
    counts = f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped"
    times = f"{outcome.took_s:.0f} s of {suite.budget_s} s, {outcome.processor_s} s of processor"
    return f"{suite.name:<12} {verdict:<4} {counts} in {times}" + (f": {outcome.problem}" if outcome.problem else "")


def closing(part: str, suites: Sequence[Suite], outcomes: Sequence[Outcome], took_s: float) -> list[str]:
    """The last lines: what ran, what failed, what was left out, and the command that runs it."""
    lines = ["== suites", *map(line_of, suites, outcomes)]
    for outcome in outcomes:
        lines += [f"FAILED {name}" for name in outcome.failing]
        lines += [f"FLAKY  {name}: it failed, and passed when it was run again alone" for name in outcome.flaky]
    lines += left_out_of(part, suites, sum(outcome.left_out for outcome in outcomes))
    passed, failed = sum(one.passed for one in outcomes), sum(one.failures for one in outcomes)
    if not passed and not failed:
        lines, failed = [*lines, "no test ran"], 1
    return [*lines, f"{took_s:.0f} s", f"{passed} passed, {failed} failed"]


def left_out_of(part: str, suites: Sequence[Suite], count: int) -> list[str]:
    """What a run of this part did not run, and the command that does. count: of the cases that it collected."""
    nightly = (
        f"{len(NIGHTLY)} kinds of tests find least for their time: ./dev test nightly, or ./dev nightly, runs them"
    )
    if part == "rest":
        return [f"left out: {count} cases, which ./dev test runs, or the night; {nightly}"]
    if part == "all":
        return [f"left out: {count} cases; {nightly}"] if count else []
    if part != "quick":
        return []
    none = ", ".join(suite.name for suite in suites if not paths_of(suite, part))
    few = ", ".join(suite.name for suite in suites if _is_of_few(suite) and paths_of(suite, part))
    lines = ["ran: all test functions of the units, but for a list, with a tenth of their seeds and examples"]
    lines += [f"ran: a few tests of {few}"] if few else []
    lines += [f"left out: {count} cases, and nine tenths of the examples of each property (the night runs them all)"]
    lines += [f"left out: all of {none}"] if none else []
    return [*lines, "./dev test rest runs what was left out; " + nightly]


def keep_bytecode() -> None:
    """Tests start hundreds of nodes and commands. Where Python must not write beside sources what it has compiled, each
    of them would compile everything anew, a second of processor for a node; what is compiled lies in `out` then.
    """
    if os.environ.pop(NO_BYTECODE, "") and BYTECODE not in os.environ:
        os.environ[BYTECODE] = str(TESTS.parent / "out" / "bytecode")


def main(argv: list[str]) -> int:
    """Exit code 0 if every suite passed within its budget."""
    cut = argv.index("--") if "--" in argv else len(argv)
    own, options = argv[:cut], argv[cut + 1 :]
    names = [suite.name for suite in SUITES]
    parser = argparse.ArgumentParser(prog="./dev test", description="Run tests; `-- OPTIONS` go to pytest.")
    parser.add_argument(
        "what", nargs="*", metavar="PART, SUITE or TEST",
        help="a part: quick (the default: minutes), rest (what quick leaves out), all (both), nightly; "
        f"or suites: {', '.join(names)}; or files and tests: tests/...",
    )  # fmt: skip
    parser.add_argument("--summary", type=Path, help="also write `PASSED FAILED` to this file")
    chosen = parser.parse_args(own)
    keep_bytecode()
    if chosen.what and all(word.startswith(OWN_PATH) for word in chosen.what):
        return subprocess.call([sys.executable, "-m", "pytest", *chosen.what, *options], cwd=TESTS.parent)
    if unknown := [word for word in chosen.what if word not in (*PARTS, *names)]:
        parser.error(f"no such part or suite: {', '.join(unknown)}")
    parts = [word for word in chosen.what if word in PARTS]
    if len(parts) > 1:
        parser.error(f"one part at a time, not {' and '.join(parts)}")
    suites = [suite for suite in SUITES if suite.name in chosen.what] or list(SUITES)
    part = parts[0] if parts else "everything" if chosen.what else "quick"
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell lets what it starts in the background ignore the first
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    outcomes = run(part, suites, options)
    lines = closing(part, suites, outcomes, time.monotonic() - started)
    if chosen.summary:
        passed, _, failed, _ = lines[-1].split()
        chosen.summary.write_text(f"{passed} {failed}\n")
    print("\n".join(lines))
    return 0 if lines[-1].endswith(" 0 failed") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
