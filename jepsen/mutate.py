"""Mutants: known mistakes, as diffs of the production code, that the simulation must catch (DESIGN 12).

A mutant is a file in jepsen/mutants/: lines `# key: value` (what: a short description; expect: invariants or checkers
that should fire; profile: of the nemesis; seconds: virtual), then a unified diff. Only a named invariant or checker
kills it, on a seed for which the unchanged tree is VALID; a crash does not. A diff that no longer applies fails the
run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepsen.checkers.findings import NOT_INVARIANTS
from jepsen.swarm import Job, results

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = Path(__file__).resolve().parent / "mutants"
PACKAGES = ("quorumlog", "storage", "quorum", "broker", "cli", "jepsen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """expect: names of findings, for people; any named invariant kills the mutant."""

    name: str
    what: str
    expect: tuple[str, ...]
    profile: str
    seconds: int
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """seeds: number tried, including the one that killed it. by: the invariant; "" if it survived. problem: why it
    could not run."""

    mutant: Mutant
    seeds: int = 0
    seed: int = 0
    by: str = ""
    took_s: float = 0.0
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"{self.mutant.name:<30} FAILED   {self.problem}"
        if not self.by:
            return f"{self.mutant.name:<30} SURVIVED {self.seeds} seeds ({self.took_s:.0f} s)"
        where = f"seed {self.seed}, profile {self.mutant.profile}"
        return (
            f"{self.mutant.name:<30} killed   seeds-to-kill {self.seeds:<4} by {self.by} ({where}, {self.took_s:.0f} s)"
        )


def read_mutant(path: Path) -> Mutant:
    text = path.read_text()
    header, _, diff = text.partition("--- ")
    fields = dict(line[2:].split(": ", 1) for line in header.splitlines() if line.startswith("# "))
    return Mutant(
        name=path.stem,
        what=fields["what"],
        expect=tuple(fields["expect"].split(", ")),
        profile=fields.get("profile", "swarm"),
        seconds=int(fields.get("seconds", "30")),
        diff="--- " + diff,
    )


def all_mutants() -> list[Mutant]:
    return [read_mutant(path) for path in sorted(MUTANTS.glob("*.diff"))]


def copy_tree(folder: Path) -> None:
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.diff")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)


def apply(mutant: Mutant, folder: Path) -> str:
    """Change the copy in `folder`. Returns the error, or ""."""
    patch = ["patch", "--strip=1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "--reject-file=-"]
    done = subprocess.run(patch, cwd=folder, input=mutant.diff, text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else f"the diff no longer applies: {done.stdout.strip()} {done.stderr.strip()}"


def run_mutants(names: list[str], seeds: int, processes: int) -> int:
    """Print the fate of each mutant. Returns 1 unless all are killed."""
    mutants = [mutant for mutant in all_mutants() if not names or mutant.name in names]
    fates = []
    for mutant in mutants:
        fates.append(fate_of(mutant, seeds, processes))
        print(fates[-1], flush=True)
    killed = sum(bool(fate.by) for fate in fates)
    print(f"{killed} of {len(fates)} mutants killed")
    return 0 if fates and killed == len(fates) else 1


def fate_of(mutant: Mutant, seeds: int, processes: int) -> Fate:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        sound, mutated = Path(name) / "sound", Path(name) / "mutated"
        for folder in (sound, mutated):
            folder.mkdir()
            copy_tree(folder)
        problem = apply(mutant, mutated)
        if problem:
            return Fate(mutant=mutant, problem=problem)
        jobs = (_job(mutant, seed, mutated) for seed in range(1, seeds + 1))
        outcomes = results(jobs, processes, os.environ)
        try:
            for tried, (job, result) in enumerate(outcomes, start=1):
                by = killer(result)
                if by and _is_valid(_job(mutant, job.seed, sound)):
                    took_s = time.monotonic() - started
                    return Fate(mutant=mutant, seeds=tried, seed=job.seed, by=by, took_s=took_s)
        finally:
            _close(outcomes)
    return Fate(mutant=mutant, seeds=seeds, took_s=time.monotonic() - started)


def killer(result: dict[str, Any]) -> str:
    """The first finding that counts; "" if there is none."""
    names = [finding["name"] for finding in result["findings"] if finding["name"] not in NOT_INVARIANTS]
    return names[0] if names and result["verdict"] == "INVALID" else ""


def _job(mutant: Mutant, seed: int, folder: Path) -> Job:
    return Job(seed=seed, profile=mutant.profile, seconds=mutant.seconds, folder=folder)


def _is_valid(job: Job) -> bool:
    ((_, result),) = results(iter([job]), 1, os.environ)
    return bool(result["verdict"] == "VALID")


def _close(outcomes: Iterator[Any]) -> None:
    close = getattr(outcomes, "close", None)
    if close is not None:
        close()
