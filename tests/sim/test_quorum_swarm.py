"""A dozen quorums of one to five voters keep every invariant, and their histories are linearizable.

A seed takes some 3 s of processor time.
"""

from __future__ import annotations

import pytest
from simulations import QUORUM_SEEDS, QUORUMS, Simulated, in_chunks, marked, must_be_valid

from jepsen.sim.job import Job
from jepsen.sim.quorum.plan import STRIKES, drawn
from jepsen.sim.time.scheduler import Scheduler

CHUNK = 10  # seeds per test

# What must happen over all seeds, at least so often. A run that commits hardly anything is VACUOUS, which fails, too.
AT_LEAST = {
    "changed": 750,
    "observed": 400,
    "opened": 60,
    "reads": 400,
    "confirmed reads": 100,
    "committed changes": 1_000,
    "epochs led": 75,
    "metadata segments": 350,
    "at the leader": 35,
    "died inside calls": 2,
    "leaders' writes": 1_650,
    "snapshots written": 300,
    "snapshots loaded": 120,
    "snapshots removed": 150,
    "snapshots damaged or lost": 3,
    "rotten snapshots needed": 1,
    "set aside while running": 1,
    "voters changed": 15,
    "nodes upgraded": 3,
    "levels changed": 7,
    **dict.fromkeys(STRIKES, 4),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("jobs", in_chunks(QUORUMS, CHUNK))
def test_quorums_are_valid(jobs: list[Job], simulated: Simulated) -> None:
    found = simulated(jobs)
    must_be_valid(jobs, found)
    assert all(result["exercised"]["committed changes"] > 0 for result in found)


@pytest.mark.timeout(900)
@marked(QUORUMS)
def test_everything_happens_often_enough(simulated: Simulated) -> None:
    found = [result["exercised"] for result in simulated(QUORUMS)]
    counted = {name: sum(each.get(name, 0) for each in found) for name in AT_LEAST}
    assert {name: count for name, count in counted.items() if count < AT_LEAST[name]} == {}


def test_the_seeds_have_every_number_of_voters_with_and_without_brokers() -> None:
    layouts = [drawn(Scheduler(seed).rng("quorum plan"), 1).layout for seed in QUORUM_SEEDS]
    kinds = {(layout.voters, bool(layout.combined), bool(layout.serving)) for layout in layouts}
    assert {voters for voters, _, _ in kinds} == {1, 2, 3, 4, 5}
    assert {kind[1:] for kind in kinds} == {(False, False), (False, True), (True, True)}
