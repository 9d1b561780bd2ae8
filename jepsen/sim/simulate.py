"""One simulation of any profile: of a whole cluster, or of a quorum alone."""

from __future__ import annotations

from typing import TextIO

from jepsen.sim.cuts import Cuts
from jepsen.sim.job import QUORUM
from jepsen.sim.quorum.run import run_quorum
from jepsen.sim.result import Result
from jepsen.sim.run import run


def simulate(seed: int, profile: str, seconds: int, cuts: Cuts, trace: TextIO | None = None) -> Result:
    if profile == QUORUM:
        return run_quorum(seed, seconds=seconds, cuts=cuts, trace=trace)
    return run(seed, profile=profile, seconds=seconds, cuts=cuts, trace=trace)
