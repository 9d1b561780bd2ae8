"""Runs the suites, each with a time budget: `python tests/run.py [SUITE ...] [-- PYTEST OPTIONS]`.

A suite is a set of folders below tests/; what no other suite claims belongs to `unit`, so no test is forgotten. A suite
is one pytest process in a session of its own; `unit` is two, side by side, because each keeps one core busy. At the
end of its budget it is interrupted, which prints where it was, and counts as failed. Budgets are DESIGN 11's, for two
cores.
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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TESTS = Path(__file__).resolve().parent
INTERRUPT_GRACE_S = 15.0  # for pytest's own report after an interrupt
NO_TESTS = 5  # pytest's exit code
RUNNING: list[subprocess.Popen[bytes]] = []  # pytest, also when it has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """folders: below tests/; for `unit`, those that it leaves to the others."""

    name: str
    budget_s: int
    folders: tuple[str, ...]


OTHERS = (
    Suite(name="losses", budget_s=2 * 60, folders=("losses",)),
    Suite(name="sim", budget_s=18 * 60, folders=("sim", "soak")),
    Suite(name="crash", budget_s=4 * 60, folders=("crash",)),
    Suite(name="live", budget_s=15 * 60, folders=("live",)),
    Suite(name="faults", budget_s=5 * 60, folders=("faults",)),
    Suite(name="clients", budget_s=6 * 60, folders=("clients", "spark")),
    Suite(name="applications", budget_s=5 * 60, folders=("applications",)),
)
CLAIMED = tuple(folder for suite in OTHERS for folder in suite.folders)
BESIDE = (
    "parsers",
    "proto",
    "records",
    "storage",
    "wire",
)  # of `unit`, those of its second process: no sockets, no waits
SUITES = (Suite(name="unit", budget_s=16 * 60, folders=CLAIMED), *OTHERS)


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


def shares_of(suite: Suite) -> list[list[str]]:
    """The folders to hand to each pytest process; none where there is no test."""
    if suite.name != "unit":
        folders = [[TESTS / name for name in suite.folders]]
    else:
        entries = sorted(path for path in TESTS.iterdir() if path.name not in CLAIMED and path.name[0] not in "._")
        folders = [
            [path for path in entries if path.is_dir() and (path.name in BESIDE) is beside] for beside in (False, True)
        ]
    shares = [[str(path) for path in share if any(path.rglob("test_*.py"))] for share in folders]
    return [share for share in shares if share]


def run(suite: Suite, options: list[str]) -> Outcome:
    """Run one suite to its end or to that of its budget. What a second process prints comes after the first one's."""
    shares = shares_of(suite)
    if not shares:
        return Outcome(name=suite.name)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(shares)) as threads:
        started = time.monotonic()

        def run_share(number: int) -> Outcome:
            report, output = Path(folder) / f"report{number}.xml", Path(folder) / f"output{number}"
            own = ["-m", "pytest", "-q", "--durations=5", f"--junitxml={report}", *options, *shares[number]]
            with output.open("wb") as file:
                code, in_time = _within([sys.executable, *own], suite.budget_s, file if number else None)
            return _outcome(suite, report, code, in_time, time.monotonic() - started)

        outcomes = list(threads.map(run_share, range(len(shares))))
        for number in range(1, len(shares)):
            print((Path(folder) / f"output{number}").read_text(errors="replace"), flush=True)
    return _together(outcomes)


def _together(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(
        name=outcomes[0].name,
        passed=sum(one.passed for one in outcomes),
        failed=sum(one.failed for one in outcomes),
        skipped=sum(one.skipped for one in outcomes),
        took_s=max(one.took_s for one in outcomes),
        problem="; ".join(one.problem for one in outcomes if one.problem),
    )


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


def _within(command: list[str], budget_s: float, output: IO[bytes] | None) -> tuple[int, bool]:
    """Run in a session of its own: (exit code, ended within the budget). Nothing of its process group is left.

    output: None for our own.
    """
    errors = None if output is None else subprocess.STDOUT
    process = subprocess.Popen(command, cwd=TESTS.parent, start_new_session=True, stdout=output, stderr=errors)
    RUNNING.append(process)
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


def _end(*_: object) -> None:
    """The suite's processes first: the threads that wait for them hold up our own end."""
    for process in RUNNING:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    sys.exit(128 + signal.SIGTERM)


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
    signal.signal(signal.SIGTERM, _end)
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
