"""A mutant is a file in jepsen/mutants/: a header of lines `# key: value`, then a unified diff of production code.

- what: the mistake, in a few words.
- expect: the invariants, checkers or promises that should fire; for people. Where a test is the killer, it says so.
- killer: `sim` (the default), `crash WORKLOAD; WORKLOAD...`, `soak DAYS` (virtual days of log directories) or
  `test NODE-ID` (one pytest file, class or function).
- also: another killer, for people: what the simulation finds of a mistake that a test kills.
- profile, seconds: of the simulation; the defaults are the swarm and 20 virtual seconds.

A diff that no longer applies fails the run.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jepsen.tree import ROOT

MUTANTS = ROOT / "jepsen" / "mutants"
FOLDERS = ("quorumlog", "storage", "quorum", "broker", "server", "cli", "console", "jepsen")
KINDS = ("sim", "crash", "soak", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """kind: of its killer, one of `KINDS`. where: the workloads of the crash sweep, the days of the soak, or the test;
    "" for a simulation.

    expect: names of findings, for people; any named finding of its killer counts.
    """

    name: str
    what: str
    expect: tuple[str, ...]
    kind: str
    where: str
    profile: str
    seconds: int
    diff: str

    @property
    def killer(self) -> str:
        """For people."""
        return f"sim {self.profile}" if self.kind == "sim" else f"{self.kind} {self.where}"

    @property
    def files(self) -> tuple[str, ...]:
        """That the diff changes, from the root."""
        heads = (line for line in self.diff.splitlines() if line.startswith("+++ b/"))
        return tuple(head.removeprefix("+++ b/").split("\t")[0] for head in heads)

    @property
    def workloads(self) -> list[str]:
        return [one.strip() for one in self.where.split(";")]


def read_mutant(path: Path) -> Mutant:
    header, _, diff = path.read_text().partition("--- ")
    fields = dict(line[2:].split(": ", 1) for line in header.splitlines() if line.startswith("# "))
    kind, _, where = fields.get("killer", "sim").partition(" ")
    assert kind in KINDS and bool(where) == (kind != "sim"), f"{path.name}: killer {kind} {where}"
    return Mutant(
        name=path.stem,
        what=fields["what"],
        expect=tuple(fields["expect"].split(", ")) if "expect" in fields else (),
        kind=kind,
        where=where,
        profile=fields.get("profile", "swarm"),
        seconds=int(fields.get("seconds", "20")),
        diff="--- " + diff,
    )


def all_mutants() -> list[Mutant]:
    return [read_mutant(path) for path in sorted(MUTANTS.glob("*.diff"))]


def changed_since(ref: str) -> frozenset[str]:
    """Files of this working tree that differ from a commit, from the root. Raises CalledProcessError for no commit."""
    command = ["git", "diff", "--name-only", ref]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(done.stdout.splitlines())


def touched_by(mutants: Iterable[Mutant], changed: frozenset[str]) -> list[Mutant]:
    """Those whose file, diff or killing test has changed: what killed them may not do so any more."""

    def is_touched(mutant: Mutant) -> bool:
        test = mutant.where.partition("::")[0] if mutant.kind == "test" else ""
        return bool(changed & {*mutant.files, f"jepsen/mutants/{mutant.name}.diff", test})

    return [mutant for mutant in mutants if is_touched(mutant)]


def copy_tree(folder: Path, *, tests: bool = False) -> None:
    """What the simulation needs, without the mutants. tests: also what pytest needs."""
    ignored = shutil.ignore_patterns("__pycache__", "*.diff")
    for package in (*FOLDERS, *(("tests",) if tests else ())):
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    if tests:
        shutil.copy(ROOT / "pyproject.toml", folder)


def apply(mutant: Mutant, folder: Path, *, only_try: bool = False) -> str:
    """Change the tree in `folder`. Returns the error, or "". only_try: change nothing."""
    patch = ["patch", "--strip=1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "--reject-file=-"]
    patch += ["--dry-run"] if only_try else []
    done = subprocess.run(patch, cwd=folder, input=mutant.diff, text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else f"the diff no longer applies: {done.stdout.strip()} {done.stderr.strip()}"
