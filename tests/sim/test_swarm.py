"""Fifty clusters keep every invariant under random faults, and so do a few under each aimed profile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest

from jepsen.sim.disk_events import CUT, METADATA_SEGMENTS, POINTS, REMOVED, SEGMENTS, SNAPSHOTS
from jepsen.sim.older_disk import OLDER_DISKS, OLDER_LOGS, SHORT_LOGS
from jepsen.sim.pairs import PARTNERS, SAME
from jepsen.sim.plan import ALL_FAULTS, CHORES, PROFILES
from jepsen.sim.restarted_voter import RESTARTED
from jepsen.sim.whole_isr import OUTSIDERS
from jepsen.swarm import TURNS, Job, profile_of, results

SEEDS = range(1, 51)
SECONDS = 40
CHUNK = 5  # seeds per test, so that no test reaches its time limit
PROFILE_SEEDS, PROFILE_SECONDS = (1, 2, 3), 20  # of each aimed profile: about 130 s for all of them on two cores

# What must happen at least once over the seeds: a kind of event that does not is not tested, whatever its verdicts say.
EVENTS = (*ALL_FAULTS, *CHORES, SAME, PARTNERS, SEGMENTS, REMOVED, CUT, METADATA_SEGMENTS, POINTS, SNAPSHOTS)
EVENTS_OF_PROFILES = {
    "full-buffers": ("stopped-clients", "full buffers"),
    "inside-calls": ("died inside calls",),
    "memory": ("memory errors",),
    "older-disk": (OLDER_LOGS, OLDER_DISKS, SHORT_LOGS),
    "pairs": (SAME, PARTNERS),
    "restarted-voter": (RESTARTED,),
    "topics": (*CHORES, REMOVED),
    "whole-isr": (OUTSIDERS,),
}


def verdicts(jobs: list[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
    return results(iter(jobs), processes=2, environment=os.environ)


def must_be_valid(jobs: list[Job]) -> list[dict[str, Any]]:
    found = list(verdicts(jobs))
    bad = [f"{job.profile} seed {job.seed}: {result['findings'][:2]}" for job, result in found if not _valid(result)]
    assert not bad, "\n".join(bad)
    return [result for _, result in found]


def _valid(result: dict[str, Any]) -> bool:
    return bool(result["verdict"] == "VALID")


def never_happened(found: Iterable[dict[str, Any]], events: Iterable[str]) -> list[str]:
    counted = [result["exercised"] for result in found]
    return [event for event in events if not any(each.get(event, 0) for each in counted)]


@cache
def chunk(first: int) -> list[dict[str, Any]]:
    return must_be_valid([Job(seed=seed, profile="swarm", seconds=SECONDS) for seed in range(first, first + CHUNK)])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", SEEDS[::CHUNK])
def test_seeds_are_valid(first: int) -> None:
    for result in chunk(first):
        assert result["exercised"]["acked"] >= SECONDS / 2, json.dumps(result["exercised"])


@pytest.mark.timeout(900)
def test_every_kind_of_event_happens_in_some_seed() -> None:
    found = [result for first in SEEDS[::CHUNK] for result in chunk(first)]
    assert never_happened(found, EVENTS) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_every_profile_is_valid(profile: str) -> None:
    found = must_be_valid([Job(seed=seed, profile=profile, seconds=PROFILE_SECONDS) for seed in PROFILE_SEEDS])
    assert never_happened(found, EVENTS_OF_PROFILES.get(profile, ())) == []


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
