"""Some clusters keep every invariant under random faults, and so do one to three under each aimed profile."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from simulations import AIMED, SECONDS, SEEDS, SWARM, Simulated, in_chunks, marked, must_be_valid

from jepsen.joint.asking import FAILOVERS
from jepsen.joint.driver import REFUSED_LATE
from jepsen.joint.late import OTHERS_REFUSED
from jepsen.joint.levels import KEPT, LEFT
from jepsen.joint.levels import LOWERED as JOINT_LOWERED
from jepsen.sim.invariants.coordinators.coordinators import WAITED
from jepsen.sim.invariants.coordinators.expiries import DELETED, UNSTAGED
from jepsen.sim.invariants.coordinators.joint_cores import REMOVED as COMPACTED_AWAY
from jepsen.sim.invariants.metadata.changed_by import SIGNED, UNSIGNED
from jepsen.sim.invariants.metadata.level_states import IMAGES_SEEN
from jepsen.sim.invariants.placement.moves import DROPPED, FOUND, MOVED
from jepsen.sim.invariants.placement.new_disks import FILLED
from jepsen.sim.invariants.placement.racks import SPREAD
from jepsen.sim.invariants.placement.reassignments import CAME, WENT
from jepsen.sim.invariants.placement.throttles import HELD_BACK
from jepsen.sim.invariants.placement.unclean_elections import LOG_ENDS, LONGEST, UNCLEAN
from jepsen.sim.invariants.replicas.deletions import LEADERS_SEEN
from jepsen.sim.invariants.security.logins import LOGINS, NEW_PASSWORDS, RENEWED
from jepsen.sim.invariants.security.quotas import COUNTED, HELD, NODES, PUT_OFF, SERVED_AFTER
from jepsen.sim.invariants.security.rules import CHANGES_SEEN, PASSED_ON, REFUSALS, SHARED, VERDICTS
from jepsen.sim.invariants.security.served import (
    CHANGED_MEANWHILE,
    IN_SESSIONS,
    IN_STREAMS,
    OF_ROOT,
    READ_CHECKED,
    REFUSED,
)
from jepsen.sim.job import QUORUM, Job
from jepsen.sim.layout import Layout
from jepsen.sim.profiles.plan import (
    ALL_FAULTS,
    BACKUPS,
    BALANCED,
    BROKERS,
    DIRECTORIES,
    DIRECTORY_FAULTS,
    GROUPS,
    IMPORTS,
    JOINT,
    LATE_DELETIONS,
    LATE_SETTINGS,
    LEFT_BEHIND,
    MOVES,
    NEAR_READERS,
    PROFILES,
    REASSIGN,
    SECOND_COPIES,
    SECURITY,
    TRANSACTIONS,
)
from jepsen.sim.strikes.directories import RETURNED
from jepsen.sim.strikes.pairs import PARTNERS, SAME
from jepsen.sim.strikes.scripts.aimed import PROPOSED_LATE
from jepsen.sim.strikes.scripts.disk_of_another import DISKS_OF_OTHERS
from jepsen.sim.strikes.scripts.killed_coordinator import (
    KILLED_BEHIND_ABORT,
    KILLED_IN_OPEN_BATCH,
    KILLED_WITH_MARKERS,
    KILLED_WITH_OFFSETS,
)
from jepsen.sim.strikes.scripts.late_deletion import ASKED_WITHOUT, LED_AFTER
from jepsen.sim.strikes.scripts.late_leader import LATE_LEADERS
from jepsen.sim.strikes.scripts.late_settings import BACK_BEHIND, TOLD_LATE
from jepsen.sim.strikes.scripts.left_behind import LEFT_WITH_FORMER
from jepsen.sim.strikes.scripts.lone_leader import LONELY
from jepsen.sim.strikes.scripts.new_disk import ALL_NEW_DISKS, NEW_DISKS, NEW_WHILE_RUNNING
from jepsen.sim.strikes.scripts.older_disk import OLDER_DISKS, OLDER_LOGS, SHORT_LOGS
from jepsen.sim.strikes.scripts.restarted_voter import RESTARTED
from jepsen.sim.strikes.scripts.second_copy import CAME_BACK, MADE, MOVED_BACK, cuts_at
from jepsen.sim.strikes.scripts.whole_isr import OUTSIDERS
from jepsen.sim.truth.disk_events import CUT, METADATA_SEGMENTS, POINTS, REMOVED, SEGMENTS, SNAPSHOTS
from jepsen.sim.workload.groups.reborn_topic import STAGED
from jepsen.sim.workload.groups.stager import RESTAGED
from jepsen.sim.workload.operator.backups import AGAIN
from jepsen.sim.workload.operator.backups import TAKEN as CUTS
from jepsen.sim.workload.operator.chores import CHORES, DURABILITY, VOTERS
from jepsen.sim.workload.operator.imports import FINISHED, LEVELS_REFUSED, PARTITIONS_REFUSED
from jepsen.sim.workload.operator.moves import ASKED, CANCELS
from jepsen.sim.workload.operator.reassignments import BEGUN, ELECTED
from jepsen.sim.workload.operator.replacements import REPLACED
from jepsen.sim.workload.security.officer import GIVEN, QUOTAS_SET, TAKEN, USERS_GONE
from jepsen.sim.workload.transactions.joint import LEFT_OPEN
from jepsen.sim.workload.transactions.transaction_levels import LOWERED, RAISED
from jepsen.swarm import TURNS, profile_of
from tests.rules import rule

CHUNK = 5  # seeds per test

# What must happen at least once over the seeds: a kind of event that does not is not tested, whatever its verdicts say.
EVENTS = (
    *(*ALL_FAULTS, *CHORES, SAME, PARTNERS),
    *(SEGMENTS, REMOVED, CUT, METADATA_SEGMENTS, POINTS, SNAPSHOTS),
    *(ASKED, CANCELS, MOVED, DROPPED),
    "brokers above three",
)
EVENTS_OF_PROFILES = {
    DIRECTORIES: ("directories failed", NEW_DISKS, NEW_WHILE_RUNNING, DISKS_OF_OTHERS, FILLED, RETURNED),
    "full-buffers": ("stopped-clients", "full buffers"),
    GROUPS: (
        *("group generations", "group commits", "group members gone", "group commits too late"),
        *("no group commits staged", "rebalances completed", "consumers gone", "compacted logs loaded", STAGED),
    ),
    "isr": (PROPOSED_LATE,),
    BALANCED: (UNCLEAN, LONGEST, LOG_ENDS),
    LATE_SETTINGS: ("settings", DURABILITY, TOLD_LATE, BACK_BEHIND),
    NEAR_READERS: ("readers sent near", "near answers"),
    BROKERS: ("brokers above three", SPREAD, ALL_NEW_DISKS, DISKS_OF_OTHERS, FILLED),
    "inside-calls": ("died inside calls",),
    "memory": ("memory errors",),
    "older-disk": (OLDER_LOGS, OLDER_DISKS, SHORT_LOGS),
    "pairs": (SAME, PARTNERS),
    "restarted-voter": (RESTARTED,),
    "sick-leaders": (LONELY,),
    "topics": (*CHORES, REMOVED),
    REASSIGN: (BEGUN, ELECTED, CAME, WENT),
    TRANSACTIONS: (
        *("transactions committed", "transactions aborted", "late calls", "old ids", "producers that died"),
        *("cores compared", "answers after commit", "markers checked"),
        *(KILLED_WITH_MARKERS, "aborts of coordinators", "epochs changed", WAITED, LOWERED, RAISED),
    ),
    BACKUPS: (CUTS, AGAIN, "transactions open at cuts", "transactions before cuts", "groups at cuts"),
    "levels": (SIGNED, UNSIGNED),
    "late-leaders": (LATE_LEADERS,),
    VOTERS: (VOTERS,),
    "whole-isr": (OUTSIDERS,),
}
LEAST_OF_OFFSETS = {DELETED: 6, UNSTAGED: 4, RESTAGED: 1, STAGED: 10, KILLED_WITH_OFFSETS: 1}  # likewise
LEAST_OF_JOINT = {  # likewise
    "joint decisions": 50,
    "joint records committed": 120,
    "joint records of others": 50,
    "joint reads": 50,
    "joint tasks told decided": 15,
    "joint runs superseded": 12,
    "joint runs refused": 8,
    "joint children refused": 3,
    "joint late rows refused": 8,
    "joint late calls": 10,
    "joint tokens told again": 10,
    "joint tasks of dead drivers": 2,
    "joint children aborted": 3,
    "joint children timed out": 4,
    "joint children not named": 30,
    "joint aborts told decided": 4,
    "joint aborts beside commits": 5,
    "joint drivers died in CommitJoint": 2,
    "joint copies refused": 1,
    "joint gaps refused": 1,
    "joint replays refused": 1,
    OTHERS_REFUSED: 4,
    FAILOVERS: 2,
    KILLED_IN_OPEN_BATCH: 1,
    KILLED_BEHIND_ABORT: 1,
    REFUSED_LATE: 3,
    COMPACTED_AWAY: 50,
    JOINT_LOWERED: 1,
    LEFT: 1,
    KEPT: 1,
    LEFT_OPEN: 3,
}
LEAST_OF_IMPORTS = {FINISHED: 4, LEVELS_REFUSED: 4, PARTITIONS_REFUSED: 4, IMAGES_SEEN: 20}  # likewise
LEAST_OF_LATE_DELETIONS = {ASKED_WITHOUT: 1, LED_AFTER: 1, LEADERS_SEEN: 1}  # likewise
LEAST_OF_LEFT_BEHIND = {LEFT_WITH_FORMER: 1}  # likewise
LEAST_OF_MOVES = {ASKED: 40, CANCELS: 10, MOVED: 20, DROPPED: 10, FOUND: 2}  # over the seeds of that profile
LEAST_OF_SECOND_COPIES = {MADE: 4, CAME_BACK: 4, MOVED_BACK: 3, cuts_at("back"): 1, cuts_at("moving"): 1}  # likewise

LEAST_OF_SECURITY = {  # likewise
    VERDICTS: 2_500,
    REFUSALS: 400,
    CHANGES_SEEN: 150,
    SHARED: 500,
    PASSED_ON: 50,
    READ_CHECKED: 250,
    IN_SESSIONS: 15,
    IN_STREAMS: 10,
    CHANGED_MEANWHILE: 80,
    REFUSED: 250,
    OF_ROOT: 1_200,
    LOGINS: 200,
    RENEWED: 30,
    NEW_PASSWORDS: 40,
    COUNTED: 100_000,
    HELD: 2,
    PUT_OFF: 1,
    SERVED_AFTER: 500,
    NODES: 1_200,
    GIVEN: 20,
    TAKEN: 12,
    USERS_GONE: 1,
    QUOTAS_SET: 8,
}


def never_happened(found: Iterable[dict[str, Any]], events: Iterable[str]) -> list[str]:
    counted = [result["exercised"] for result in found]
    return [event for event in events if not any(each.get(event, 0) for each in counted)]


def too_seldom(found: Iterable[dict[str, Any]], least: Mapping[str, int]) -> dict[str, int]:
    """How often it happened in all of them together."""
    counted = [result["exercised"] for result in found]
    sums = {name: sum(each.get(name, 0) for each in counted) for name in least}
    return {name: count for name, count in sums.items() if count < least[name]}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("jobs", in_chunks(SWARM, CHUNK))
def test_seeds_are_valid(jobs: list[Job], simulated: Simulated) -> None:
    found = simulated(jobs)
    must_be_valid(jobs, found)
    for result in found:
        assert result["exercised"]["acked"] >= SECONDS / 2, json.dumps(result["exercised"])


@pytest.mark.timeout(900)
@marked(SWARM)
def test_every_kind_of_event_happens_in_some_seed(simulated: Simulated) -> None:
    assert never_happened(simulated(SWARM), EVENTS) == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("profile", [pytest.param(name, marks=marked(jobs)) for name, jobs in AIMED.items()])
def test_every_profile_is_valid(profile: str, simulated: Simulated) -> None:
    found = simulated(AIMED[profile])
    must_be_valid(AIMED[profile], found)
    assert never_happened(found, EVENTS_OF_PROFILES.get(profile, ())) == []


@marked(AIMED[MOVES])
@pytest.mark.timeout(900)
def test_many_replicas_move_and_many_moves_are_given_up(simulated: Simulated) -> None:
    assert too_seldom(simulated(AIMED[MOVES]), LEAST_OF_MOVES) == {}


@marked(AIMED[SECOND_COPIES])
@pytest.mark.timeout(900)
def test_replicas_lie_twice_and_power_is_cut_when_their_first_directories_are_back(simulated: Simulated) -> None:
    assert too_seldom(simulated(AIMED[SECOND_COPIES]), LEAST_OF_SECOND_COPIES) == {}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("profile", "least"),
    [
        pytest.param(profile, least, marks=marked(AIMED[profile]), id=profile)
        for profile, least in (
            (IMPORTS, LEAST_OF_IMPORTS),
            (LATE_DELETIONS, LEAST_OF_LATE_DELETIONS),
            (LEFT_BEHIND, LEAST_OF_LEFT_BEHIND),
        )
    ],
)
def test_what_a_profile_is_for_happens_often_enough(
    profile: str, least: Mapping[str, int], simulated: Simulated
) -> None:
    assert too_seldom(simulated(AIMED[profile]), least) == {}


@rule("security 1.3", "security 1.6", "security 1.8", "security 1.9", "security 1.12", "security 1.17", "security 1.18")
@rule("security 1.21", "security 1.22", "security 1.24", "security 1.28", "security 1.29")
@marked(AIMED[SECURITY])
@pytest.mark.timeout(900)
def test_rights_logins_and_quotas_are_looked_at_while_they_change_and_nodes_die(simulated: Simulated) -> None:
    assert too_seldom(simulated(AIMED[SECURITY]), LEAST_OF_SECURITY) == {}


@marked(AIMED[GROUPS])
@pytest.mark.timeout(900)
def test_offsets_that_transactions_hold_are_deleted_and_so_are_their_topics(simulated: Simulated) -> None:
    assert too_seldom(simulated(AIMED[GROUPS]), LEAST_OF_OFFSETS) == {}


@marked(AIMED[JOINT])
@pytest.mark.timeout(900)
def test_batches_of_joint_transactions_meet_replays_late_attempts_aborts_failovers_and_levels(
    simulated: Simulated,
) -> None:
    assert too_seldom(simulated(AIMED[JOINT]), LEAST_OF_JOINT) == {}


@marked(AIMED[REASSIGN])
@pytest.mark.timeout(900)
def test_throttles_hold_moves_back_and_brokers_are_replaced(simulated: Simulated) -> None:
    found = [result["exercised"] for result in simulated(AIMED[REASSIGN])]
    assert sum(each[HELD_BACK] > 5 for each in found) > len(found) / 2, [each[HELD_BACK] for each in found]
    assert sum(each[REPLACED] for each in found) >= 3, [each[REPLACED] for each in found]


def test_layouts_have_three_to_six_brokers_and_no_rack_is_empty() -> None:
    drawn = [Layout.drawn(random.Random(seed)) for seed in range(300)]
    assert {len(one.brokers) for one in drawn} == {3, 4, 5, 6}
    assert {len(set(one.racks.values())) for one in drawn} == {0, 2, 3}
    assert all({*one.racks} <= {*one.brokers} and one.seconds(30) * len(one.brokers) <= 90 for one in drawn)
    assert sum(one.extra == 0 for one in drawn) > 150, "most seeds stay as cheap as they were"


def test_a_long_swarm_goes_through_all_profiles_by_turns() -> None:
    assert {profile_of(turn, None) for turn in range(len(TURNS))} == {"swarm", QUORUM, *PROFILES}
    assert profile_of(len(TURNS), None) == profile_of(0, None) == "swarm"
    assert {profile_of(turn, "disks") for turn in range(len(TURNS))} == {"disks"}


def test_every_fault_is_in_some_seed() -> None:
    """CI's swarm omits no kind of fault."""
    from jepsen.sim.profiles.plan import Plan
    from jepsen.sim.time.scheduler import Scheduler

    drawn = {fault for seed in SEEDS for fault in Plan.swarm(Scheduler(seed).rng("plan")).faults}
    assert drawn == {*ALL_FAULTS, *DIRECTORY_FAULTS}
