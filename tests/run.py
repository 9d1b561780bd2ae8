"""Runs the suites, each with a time budget: `python tests/run.py [SUITE ...] [-- PYTEST OPTIONS]`.

A suite is a set of folders below tests/; what no other suite claims belongs to `unit`, so no test is forgotten. A suite
is one pytest process in a session of its own. At the end of its budget it is interrupted, which prints where it was,
and counts as failed. Budgets are DESIGN 11's, for two cores.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
INTERRUPT_GRACE_S = 15.0  # for pytest's own report after an interrupt
NO_TESTS = 5  # pytest's exit code


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """folders: below tests/; for `unit`, those that it leaves to the others."""

    name: str
    budget_s: int
    folders: tuple[str, ...]


OTHERS = (
    Suite(name="losses", budget_s=4 * 60, folders=("losses",)),
    Suite(name="sim", budget_s=15 * 60, folders=("sim",)),
    Suite(name="crash", budget_s=5 * 60, folders=("crash",)),
    Suite(name="live", budget_s=6 * 60, folders=("live",)),
    Suite(name="faults", budget_s=6 * 60, folders=("faults",)),
    Suite(name="clients", budget_s=6 * 60, folders=("clients", "spark")),
)
CLAIMED = tuple(folder for suite in OTHERS for folder in suite.folders)
SUITES = (Suite(name="unit", budget_s=11 * 60, folders=CLAIMED), *OTHERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one suite did. problem: why it failed, beyond failed tests; empty for none."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    took_s: float = 0.0
    problem: str = ""

    @property
    def failures(self) -> int:
        """Failed tests, and one for a problem that no test stands for."""
        return self.failed or (1 if self.problem else 0)


def paths_of(suite: Suite) -> list[str]:
    """The folders to hand to pytest; empty where none is there."""
    if suite.name == "unit":
        entries = sorted(path for path in TESTS.iterdir() if path.name not in CLAIMED and path.name[0] not in "._")
        return [str(path) for path in entries if path.is_dir() and any(path.rglob("test_*.py"))]
    return [str(TESTS / name) for name in suite.folders if any((TESTS / name).rglob("test_*.py"))]


def run(suite: Suite, options: list[str]) -> Outcome:
    """Run one suite to its end or to that of its budget."""
    paths = paths_of(suite)
    if not paths:
        return Outcome(name=suite.name)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--durations=5", f"--junitxml={report}", *options, *paths]
        started = time.monotonic()
        code, in_time = _within(command, suite.budget_s)
        took_s = time.monotonic() - started
        return _outcome(suite, report, code, in_time, took_s)


def _outcome(suite: Suite, report: Path, code: int, in_time: bool, took_s: float) -> Outcome:
    passed, failed, skipped = _counts(report)
    problem = ""
    if not in_time:
        problem = f"over its budget of {suite.budget_s} s"
    elif code == NO_TESTS:
        problem = "no test ran"
    elif code != 0 and not failed:
        problem = f"pytest ended with {code}"
    return Outcome(name=suite.name, passed=passed, failed=failed, skipped=skipped, took_s=took_s, problem=problem)


def _within(command: list[str], budget_s: float) -> tuple[int, bool]:
    """Run in a session of its own: (exit code, ended within the budget). Nothing of its process group is left."""
    process = subprocess.Popen(command, cwd=TESTS.parent, start_new_session=True)
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


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # the usual case: all of the group has ended
    process.wait()


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
        return f"{suite.name:<8} nothing there"
    verdict = "FAIL" if outcome.failures else "ok"
    counts = f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped"
    times = f"{outcome.took_s:.0f} s of {suite.budget_s} s"
    return f"{suite.name:<8} {verdict:<4} {counts} in {times}" + (f": {outcome.problem}" if outcome.problem else "")


def main(argv: list[str]) -> int:
    """Exit code 0 if every suite passed within its budget."""
    cut = argv.index("--") if "--" in argv else len(argv)
    own, options = argv[:cut], argv[cut + 1 :]
    parser = argparse.ArgumentParser(prog="./dev test", description="Run suites; `-- OPTIONS` go to pytest.")
    names = [suite.name for suite in SUITES]
    parser.add_argument("suite", nargs="*", metavar="SUITE", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--summary", type=Path, help="also write `PASSED FAILED` to this file")
    chosen = parser.parse_args(own)
    if unknown := [name for name in chosen.suite if name not in names]:
        parser.error(f"no such suite: {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that `finally` ends the suite too
    suites = [suite for suite in SUITES if suite.name in chosen.suite or not chosen.suite]
    lines, passed, failed = [], 0, 0
    for suite in suites:
        print(f"== {suite.name} (budget {suite.budget_s} s)", flush=True)
        outcome = run(suite, options)
        lines.append(line_of(suite, outcome))
        passed, failed = passed + outcome.passed, failed + outcome.failures
        if chosen.summary:
            chosen.summary.write_text(f"{passed} {failed}\n")
    print("\n".join(["== suites", *lines, f"{passed} passed, {failed} failed"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
