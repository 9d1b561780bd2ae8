"""One simulation that another process runs, and the result of one that could not."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jepsen.checkers.findings import SIMULATION_ERROR
from jepsen.sim.cuts import Cuts

QUORUM = "quorum"  # the profile that has no partitions: jepsen/sim/quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """folder: the tree to run; None: this one. noting: the result also has the "functions" that ran."""

    seed: int
    profile: str
    seconds: int
    cuts: Cuts = field(default_factory=Cuts)
    folder: Path | None = None
    noting: bool = False

    @property
    def options(self) -> list[str]:
        """The command line after `jepsen`; it prints one line of JSON."""
        run = ["--seed", str(self.seed), "--profile", self.profile, "--seconds", str(self.seconds)]
        return ["sim", *run, *self.cuts.options.split(), "--json"]


def broken(why: str) -> dict[str, Any]:
    """The result of a simulation that gave none."""
    finding = {"name": SIMULATION_ERROR, "text": why, "at_ns": -1}
    return {"verdict": "BROKEN", "wire": "-", "trace": "", "exercised": {}, "findings": [finding]}
