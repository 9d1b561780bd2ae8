"""What this suite simulates: CI's seeds of the swarm, of the quorum and of every aimed profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from jepsen.sim.job import QUORUM, Job
from jepsen.sim.profiles.plan import (
    BROKERS,
    DIRECTORIES,
    GROUPS,
    IMPORTS,
    JOINT,
    LATE_DELETIONS,
    LATE_SETTINGS,
    LEFT_BEHIND,
    MOVES,
    PROFILES,
    REASSIGN,
    SECOND_COPIES,
    SECURITY,
)

Simulated = Callable[[Iterable[Job]], list[dict[str, Any]]]  # the fixture `simulated` of conftest.py

# So many seeds that all events of test_swarm.py and test_quorum_swarm.py happen, and that most known mistakes which the
# simulation finds are found (docs/decisions/0076). Others are the night's.
SEEDS, SECONDS = (*range(1, 7), 9, 10, 19), 30
QUORUM_SEEDS, QUORUM_SECONDS = (1, 2, 3, 8, *range(5, 25, 2)), 60
PROFILE_SEEDS, PROFILE_SECONDS = (1,), 20
_SECONDS_OF = {SECURITY: 6}  # the night has more of it
_SEEDS_OF: dict[str, Sequence[int]] = {
    BROKERS: (2, 3),
    DIRECTORIES: (3, 4, 5),
    GROUPS: (1, 2, 3),
    "isr": (8,),  # in which a late proposal comes
    JOINT: (1, 2),  # in which coordinators die in an open batch and behind an abort, and the level is left
    LEFT_BEHIND: (2,),  # in which readers are left with a broker that knows the former topic
    LATE_SETTINGS: (4,),  # in which both scripts go to their ends
    MOVES: (2, 3),
    "older-disk": (1, 2),
    REASSIGN: (2, 3),
    SECURITY: (2, 3),  # one of each wire
    SECOND_COPIES: (2, 10),  # six second copies, and a power cut at four of their stages
    "whole-isr": (2,),
}


def _jobs(profile: str, seeds: Iterable[int], seconds: int, *, noting: bool = True) -> list[Job]:
    """noting: they also note which functions run, which costs little once all modules are compiled for it."""
    return [Job(seed=seed, profile=profile, seconds=seconds, noting=noting) for seed in seeds]


SWARM = _jobs("swarm", SEEDS, SECONDS)
QUORUMS = _jobs(QUORUM, QUORUM_SEEDS, QUORUM_SECONDS)
AIMED = {
    profile: _jobs(profile, _SEEDS_OF.get(profile, PROFILE_SEEDS), _SECONDS_OF.get(profile, PROFILE_SECONDS))
    for profile in sorted(PROFILES)
}
SHORT_SECONDS = 10
SHORT = [
    *_jobs("swarm", range(101, 104), SHORT_SECONDS, noting=False),
    *_jobs(QUORUM, range(101, 103), SHORT_SECONDS, noting=False),
    *(
        job
        for profile in ("directories", "groups", "reassign", "transactions")
        for job in _jobs(profile, [101], SHORT_SECONDS, noting=False)
    ),
]
SELDOM = (IMPORTS, LATE_DELETIONS, LEFT_BEHIND, SECURITY)  # profiles that reach no function which others do not
EVERY = [*QUORUMS, *SWARM, *(job for profile, jobs in AIMED.items() if profile not in SELDOM for job in jobs)]


def marked(jobs: Sequence[Job]) -> pytest.MarkDecorator:
    return pytest.mark.simulations(*jobs)


def in_chunks(jobs: Sequence[Job], size: int) -> list[Any]:
    """Parameters `jobs` of a test: so few for each that no test reaches its time limit."""
    chunks = [jobs[first : first + size] for first in range(0, len(jobs), size)]
    return [pytest.param(chunk, marks=marked(chunk), id=f"{chunk[0].seed}") for chunk in chunks]


def must_be_valid(jobs: Sequence[Job], found: Iterable[dict[str, Any]]) -> None:
    told = zip(jobs, found, strict=True)
    bad = [f"{job.profile} seed {job.seed}: {one['findings'][:2]}" for job, one in told if one["verdict"] != "VALID"]
    assert not bad, "\n".join(bad)
