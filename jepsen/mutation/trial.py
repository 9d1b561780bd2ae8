"""`./dev mutants`: tries every mutant, prints its fate, and writes the report."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jepsen.mutation.killers import Killers
from jepsen.mutation.mutant import Mutant, all_mutants, apply, copy_tree, touched_by
from jepsen.mutation.table import Row, write_report

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """runs: number tried, including the one that killed it. seed: of that one, in a simulation. by: the finding; "" if
    the mutant survived. took_s: of processor time. problem: why it could not run."""

    mutant: Mutant
    runs: int = 0
    seed: int = 0
    by: str = ""
    took_s: float = 0.0
    problem: str = ""

    def __str__(self) -> str:
        name = f"{self.mutant.name:<36}"
        if self.problem:
            return f"{name} FAILED   {self.problem}"
        if not self.by:
            return f"{name} SURVIVED {self.runs} runs of {self.mutant.killer} ({self.took_s:.0f} s)"
        return f"{name} killed   after {self.runs} by {self.by} ({self.mutant.killer}, {self.took_s:.0f} s)"

    @property
    def row(self) -> Row:
        mutant = self.mutant
        return Row(mutant.name, mutant.what, mutant.killer, self.by or "survived", self.runs, round(self.took_s))


def run_mutants(
    names: Sequence[str],
    seeds: int,
    processes: int,
    report: Path | None = None,
    say: Say = print,
    changed: frozenset[str] | None = None,
) -> int:
    """Try the mutants, all if none is named. Returns 1 unless all are killed. seeds: most simulations of each.

    changed: only those that these files concern; there may be none.
    """
    known = all_mutants()
    unknown = [name for name in names if name not in [mutant.name for mutant in known]]
    if unknown:
        say(f"no such mutant: {', '.join(unknown)}")
        return 1
    chosen = [mutant for mutant in known if not names or mutant.name in names]
    if changed is not None:
        chosen = touched_by(chosen, changed)
        if not chosen:
            say("no mutant concerns what has changed")
            return 0
    say(f"{len(chosen)} mutants, at most {seeds} seeds for each that the simulation must kill")
    fates = []
    with tempfile.TemporaryDirectory() as name:
        sound = Path(name)
        copy_tree(sound, tests=True)
        killers = Killers(sound, processes)
        for number, mutant in enumerate(chosen, start=1):
            fates.append(fate_of(mutant, killers, seeds))
            say(f"[{number}/{len(chosen)}] {fates[-1]}")
            if report is not None:
                write_report(report, [fates[-1].row], [mutant.name for mutant in known])
    killed = sum(bool(fate.by) for fate in fates)
    say(f"{killed} of {len(fates)} mutants killed")
    return 0 if fates and killed == len(fates) else 1


def fate_of(mutant: Mutant, killers: Killers, seeds: int) -> Fate:
    started_s = _spent_s()
    with tempfile.TemporaryDirectory() as name:
        mutated = Path(name)
        copy_tree(mutated, tests=mutant.kind == "test")
        problem = apply(mutant, mutated)
        if problem:
            return Fate(mutant=mutant, problem=problem)
        runs = 0
        for runs, tried in enumerate(killers.tries(mutant, mutated, seeds), start=1):
            if tried.by:
                took_s = _spent_s() - started_s
                return Fate(mutant=mutant, runs=runs, seed=tried.seed, by=tried.by, took_s=took_s)
    return Fate(mutant=mutant, runs=runs, took_s=_spent_s() - started_s)


def _spent_s() -> float:
    """Processor time of this process's ended children: the same on a busy machine as on an idle one."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
