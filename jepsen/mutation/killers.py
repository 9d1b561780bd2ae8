"""What kills a mutant: a named finding in the mutated tree, of a run that finds nothing in the sound one.

- sim: an invariant or a checker, on a seed for which the sound tree is VALID. The end of a process is none.
- crash: a promise of the crash sweep, in a workload that keeps all promises in the sound tree. An exception is none.
- soak: a promise that was broken, or a gauge that passed its bound or grows, in a run that finds nothing in the sound
  tree; whether that run is long enough to prove anything of it does not matter here.
- test: a failed assertion of a test that passes in the sound tree. An error of another kind is none.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jepsen.checkers.findings import NOT_INVARIANTS
from jepsen.crash.runs import UNEXPECTED
from jepsen.guard import Guard, Mark, end_group
from jepsen.mutation.mutant import Mutant
from jepsen.pool.pool import results
from jepsen.sim.job import Job
from jepsen.soak.gauges import FOUND, TOO_LITTLE, VALID
from jepsen.tree import runs_from

TEST_LIMIT_S = 300
CRASH_LIMIT_S = 900
SOAK_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Tried:
    """seed: of the simulation; 0 otherwise. by: the finding that killed; "" if this run found nothing that counts."""

    seed: int
    by: str


class Killers:
    """Runs mutants against a sound copy of the tree, which is asked once for each seed, workload and test."""

    def __init__(self, sound: Path, processes: int) -> None:
        self._sound, self._processes = sound, processes
        self._is_sound: dict[tuple[str, str, int, int], bool] = {}

    def tries(self, mutant: Mutant, mutated: Path, seeds: int) -> Iterator[Tried]:
        """One item for each run, until one kills. seeds: most simulations; the other killers run once."""
        match mutant.kind:
            case "sim":
                yield from self._simulations(mutant, mutated, seeds)
            case "crash":
                yield from self._sweeps(mutant, mutated)
            case "soak":
                by = passed_bound(mutated, mutant.where)
                yield Tried(0, by if by and self._knows(("soak", mutant.where, 0, 0)) else "")
            case _:
                by = failed_test(mutated, mutant.where)
                yield Tried(0, by if by and self._knows(("test", mutant.where, 0, 0)) else "")

    def _simulations(self, mutant: Mutant, mutated: Path, seeds: int) -> Iterator[Tried]:
        profile, seconds = mutant.profile, mutant.seconds
        jobs = (Job(seed=seed, profile=profile, seconds=seconds, folder=mutated) for seed in range(1, seeds + 1))
        outcomes = results(jobs, self._processes, os.environ)
        try:
            for job, result in outcomes:
                by = finding_of(result)
                if by and self._knows(("sim", profile, seconds, job.seed)):
                    yield Tried(job.seed, by)
                    return
                yield Tried(job.seed, "")
        finally:
            outcomes.close()  # ends what still runs

    def _sweeps(self, mutant: Mutant, mutated: Path) -> Iterator[Tried]:
        for workload in mutant.workloads:
            by = broken_promise(mutated, workload)
            if by and self._knows(("crash", workload, 0, 0)):
                yield Tried(0, by)
                return
            yield Tried(0, "")

    def _knows(self, run: tuple[str, str, int, int]) -> bool:
        """Whether the sound tree passes this run."""
        if run not in self._is_sound:
            self._is_sound[run] = self._passes(*run)
        return self._is_sound[run]

    def _passes(self, kind: str, what: str, seconds: int, seed: int) -> bool:
        if kind == "sim":
            job = Job(seed=seed, profile=what, seconds=seconds, folder=self._sound)
            ((_, result),) = results(iter([job]), 1, os.environ)
            return bool(result["verdict"] == "VALID")
        if kind == "crash":
            return broken_promise(self._sound, what) == ""
        if kind == "soak":
            told = _soak(self._sound, what)
            return f": {VALID} " in told or f": {TOO_LITTLE} " in told
        return passes(self._sound, what)


def finding_of(result: dict[str, Any]) -> str:
    """The first finding of a simulation that counts; "" if there is none."""
    names = [finding["name"] for finding in result["findings"] if finding["name"] not in NOT_INVARIANTS]
    return names[0] if names and result["verdict"] == "INVALID" else ""


def broken_promise(folder: Path, workload: str) -> str:
    """The first promise of the sweep that this tree breaks; "" if it keeps all, or breaks in another way."""
    sweep = ["crash-sweep", "--seed", "1", "--workload", workload, "--processes", "1"]
    told = _run(folder, ["jepsen", *sweep], CRASH_LIMIT_S).splitlines()
    broken = [line.removeprefix("BROKEN ").partition(":")[0] for line in told if line.startswith("BROKEN ")]
    return next((name for name in broken if name != UNEXPECTED), "")


def passed_bound(folder: Path, days: str) -> str:
    """The first finding of a soak of log directories in this tree; "" if it has none, or ends in another way."""
    told = [line for line in _soak(folder, days).splitlines() if line.startswith(FOUND)]
    return told[0].removeprefix(FOUND).partition(":")[0] if told else ""


def _soak(folder: Path, days: str) -> str:
    report = ["--report", str(folder / "soak")]
    return _run(folder, ["jepsen", "soak", "--virtual-days", days, "--seed", "1", *report], SOAK_LIMIT_S)


def failed_test(folder: Path, node_id: str) -> str:
    """The first test that fails in this tree by an assertion of its own; "" if all pass, or fail in another way."""
    report = folder / "killer.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=1", f"--junitxml={report}"]
    _run(folder, ["pytest", *options, node_id], TEST_LIMIT_S)
    cases = ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ()
    for case in cases:
        failure = case.find("failure")
        if failure is not None and is_assertion(failure.text or ""):
            return f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
    return ""


def passes(folder: Path, node_id: str) -> bool:
    """Whether the test can be run in this tree, and passes."""
    done = _run(folder, ["pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=1", node_id], TEST_LIMIT_S)
    return re.search(r"^\d+ passed", done, re.MULTILINE) is not None and " failed" not in done


def is_assertion(told: str) -> bool:
    """told: what pytest says of a failure. Its last place is where the exception was raised: in a test, not below."""
    places = re.findall(r"^(\S+?\.py):\d+: (\w*)", told, re.MULTILINE)
    return bool(places) and places[-1][0].startswith("tests/") and places[-1][1] in ("AssertionError", "Failed")


def _run(folder: Path, module: list[str], limit_s: int) -> str:
    """The output of `python -m MODULE...` in this tree; "" if it takes too long. It leaves no process behind."""
    mark = Mark("QL_KILLER", f"{folder.resolve()}:{os.getpid()}")
    guard = Guard(mark)
    process = subprocess.Popen(
        [sys.executable, "-m", *module],
        cwd=folder,
        env={**runs_from(folder, os.environ), **mark.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        guard.watch(process.pid)
        return process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        return ""
    finally:  # it may still run, after an interrupt, too
        end_group(process.pid)
        guard.close()  # ends nodes in groups of their own
        process.wait()
