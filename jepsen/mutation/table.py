"""docs/mutants.md: which mutants there are, and what killed each. Written by `./dev mutants --report FILE`.

A run of some mutants replaces their rows and keeps the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from jepsen.tree import ROOT

TABLE = ROOT / "docs" / "mutants.md"
SURVIVED = "survived"

_INTRODUCTION = """\
# Mutants

Each line is a known mistake: a small diff of production code in `jepsen/mutants/`. Something must notice it, or it is
not a proof that the simulation, the crash sweep and the tests bite. `./dev mutants --report docs/mutants.md` writes
this page; a name after `mutants` tries that one only and keeps the other lines.

- killer: `sim PROFILE` is the simulation, 20 virtual seconds a seed, 60 of the profile `quorum`, 8 of `joint`;
  `crash WORKLOAD` is the crash sweep; `soak DAYS` is so many virtual days of log directories; `test` names a test.
  Named findings count, and only where the sound tree passes the same run. The end of a process does not count.
- runs: how many runs it took: seeds from 1 on, or workloads.
- seconds: of processor time, the sound tree's run included where it was the first to ask for it.

"""
_HEADINGS = "| mutant | mistake | killer | killed by | runs | seconds |\n|---|---|---|---|---|---|\n"


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    what: str
    killer: str
    by: str  # SURVIVED if nothing killed it
    runs: int
    seconds: int

    @property
    def line(self) -> str:
        cells = (self.name, self.what, self.killer, self.by, str(self.runs), str(self.seconds))
        return f"| {' | '.join(cells)} |\n"


def write_report(path: Path, rows: Iterable[Row], known: Sequence[str]) -> None:
    """Replace these rows, and remove those of mutants that are not `known`. JSON if the name ends with `.json`."""
    kept = {row.name: row for row in (read_report(path) if path.exists() else []) if row.name in known}
    kept.update((row.name, row) for row in rows)
    ordered = [kept[name] for name in sorted(kept)]
    if path.suffix == ".json":
        path.write_text(json.dumps([asdict(row) for row in ordered], indent=1) + "\n")
    else:
        path.write_text(_INTRODUCTION + _HEADINGS + "".join(row.line for row in ordered) + "\n" + summary(ordered))


def read_report(path: Path) -> list[Row]:
    text = path.read_text()
    if path.suffix == ".json":
        return [Row(**one) for one in json.loads(text)]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    found = [cells for cells in lines if len(cells) == len(fields(Row)) and cells[0] != "mutant"]
    return [Row(name, what, killer, by, int(runs), int(took)) for name, what, killer, by, runs, took in found]


def summary(rows: Sequence[Row]) -> str:
    killed = [row for row in rows if row.by != SURVIVED]
    by_swarm = sum(row.killer == "sim swarm" for row in killed)
    return f"{len(killed)} of {len(rows)} are killed, {by_swarm} of them by the swarm.\n"
