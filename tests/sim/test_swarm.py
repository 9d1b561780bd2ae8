"""Fifty clusters keep every invariant under random faults, and so do a few under each aimed profile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from jepsen.sim.plan import ALL_FAULTS, PROFILES
from jepsen.swarm import TURNS, Job, profile_of, results

SEEDS = range(1, 51)
SECONDS = 60
CHUNK = 5  # seeds per test, so that no test reaches its time limit
PROFILE_SEEDS, PROFILE_SECONDS = (1, 2, 3), 20  # of each aimed profile: about 75 s for all of them on two cores


def verdicts(jobs: list[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
    return results(iter(jobs), processes=2, environment=os.environ)


def must_be_valid(jobs: list[Job]) -> list[dict[str, Any]]:
    found = list(verdicts(jobs))
    bad = [f"{job.profile} seed {job.seed}: {result['findings'][:2]}" for job, result in found if not _valid(result)]
    assert not bad, "\n".join(bad)
    return [result for _, result in found]


def _valid(result: dict[str, Any]) -> bool:
    return bool(result["verdict"] == "VALID")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", SEEDS[::CHUNK])
def test_seeds_are_valid(first: int) -> None:
    jobs = [Job(seed=seed, profile="swarm", seconds=SECONDS) for seed in range(first, first + CHUNK)]
    for result in must_be_valid(jobs):
        assert result["exercised"]["acked"] >= SECONDS, json.dumps(result["exercised"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_every_profile_is_valid(profile: str) -> None:
    must_be_valid([Job(seed=seed, profile=profile, seconds=PROFILE_SECONDS) for seed in PROFILE_SEEDS])


def test_a_long_swarm_goes_through_all_profiles_by_turns() -> None:
    assert {profile_of(turn, None) for turn in range(len(TURNS))} == {"swarm", *PROFILES}
    assert profile_of(len(TURNS), None) == profile_of(0, None) == "swarm"
    assert {profile_of(turn, "disks") for turn in range(len(TURNS))} == {"disks"}


def test_every_fault_is_in_some_seed() -> None:
    """CI's swarm omits no kind of fault."""
    from jepsen.sim.plan import Plan
    from jepsen.sim.scheduler import Scheduler

    drawn = {fault for seed in SEEDS for fault in Plan.swarm(Scheduler(seed).rng("plan")).faults}
    assert drawn == set(ALL_FAULTS)
