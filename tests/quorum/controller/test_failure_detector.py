"""The proof of death: which answers prove it, which do not, and when the rule is off."""

from __future__ import annotations

from itertools import pairwise

import pytest
from controller_world import uuid
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.rpc.transport import Address, Answered, NoProof, ProbeResult, Refused
from quorumlog_quorum.controller.engine.failure_detector import (
    DetectorEffect,
    FailureDetector,
    Probe,
    ProvenDead,
    Target,
)

SESSION_MS = 9_000
ME = Target(broker_id=1, incarnation_id=uuid(1), address=Address("h", 1))
ALIVE = Answered(1, uuid(1))
REBORN = Answered(1, uuid(2))
STRANGER = Answered(7, uuid(7))
SILENT = NoProof("time-out")


class Watched:
    """A suspected broker, and a clock that advances to each probe, which the test answers."""

    def __init__(self, reached: bool = True) -> None:
        self.core = FailureDetector(SESSION_MS)
        self.now_ms = 0
        self.core.on_registered(ME, 0)
        if reached:
            assert self.probe(ALIVE) == []
            assert self.core.deadline_ms() is None, "once reached it is left alone"

    def probe(self, result: ProbeResult) -> list[DetectorEffect]:
        """Advance to the next probe and answer it."""
        due = self.core.deadline_ms()
        assert due is not None, "no probe is due"
        self.now_ms = max(self.now_ms, due)
        assert self.core.on_timer(self.now_ms) == [Probe(ME)]
        assert self.core.on_timer(self.now_ms) == [], "one probe at a time"
        return self.core.on_probed(ME, result, self.now_ms)

    def close_stream(self) -> None:
        self.core.on_stream_closed(1, uuid(1), self.now_ms)


def test_two_refusals_50_ms_apart_are_proof() -> None:
    watched = Watched()
    watched.close_stream()
    assert watched.core.deadline_ms() == watched.now_ms, "the first probe goes at once"
    start = watched.now_ms
    assert watched.probe(Refused()) == []
    (effect,) = watched.probe(Refused())
    assert isinstance(effect, ProvenDead) and effect.target == ME
    assert watched.now_ms == start + 50


def test_an_answer_of_a_new_process_is_proof_at_once() -> None:
    watched = Watched()
    watched.close_stream()
    assert [type(effect) for effect in watched.probe(REBORN)] == [ProvenDead]


def test_a_port_that_another_node_took_over_is_proof_only_where_the_broker_was_reached() -> None:
    watched = Watched()
    watched.close_stream()
    assert [type(effect) for effect in watched.probe(STRANGER)] == [ProvenDead]
    never_reached = Watched(reached=False)
    never_reached.close_stream()
    assert [never_reached.probe(STRANGER) for _ in range(5)] == [[]] * 5


NO_PROOF: list[tuple[str, list[ProbeResult]]] = [
    ("silence", [SILENT] * 5),
    ("it answers", [ALIVE] * 5),
    ("a refusal among silences", [Refused(), SILENT, Refused(), SILENT]),
    ("a refusal, then an answer", [Refused(), ALIVE, Refused(), ALIVE]),
]


@pytest.mark.parametrize("answers", [case[1] for case in NO_PROOF], ids=[case[0] for case in NO_PROOF])
def test_everything_else_waits_for_the_session(answers: list[ProbeResult]) -> None:
    watched = Watched()
    watched.close_stream()
    assert [watched.probe(answer) for answer in answers] == [[]] * len(answers)


def test_a_refusal_where_it_was_never_reached_proves_nothing() -> None:
    watched = Watched(reached=False)
    watched.close_stream()
    assert [watched.probe(Refused()) for _ in range(5)] == [[]] * 5


def test_a_broker_that_is_not_suspected_is_not_proven_dead() -> None:
    watched = Watched(reached=False)
    assert watched.probe(REBORN) == []


def test_suspicion_goes_on_until_one_session_has_passed() -> None:
    watched = Watched()
    watched.close_stream()
    while watched.core.deadline_ms() is not None:
        assert watched.probe(SILENT) == []
    assert SESSION_MS <= watched.now_ms <= SESSION_MS + 250


def test_a_heartbeat_ends_the_suspicion() -> None:
    watched = Watched()
    watched.close_stream()
    watched.probe(Refused())
    watched.core.on_heartbeat(1, uuid(1), watched.now_ms)
    assert watched.core.deadline_ms() is None
    watched.close_stream()
    assert watched.probe(Refused()) == [], "the refusal before the heartbeat no longer counts"


def test_another_incarnations_heartbeat_or_stream_says_nothing() -> None:
    watched = Watched()
    watched.core.on_stream_closed(1, uuid(9), 0)
    assert watched.core.deadline_ms() is None
    watched.close_stream()
    watched.core.on_heartbeat(1, uuid(9), 0)
    assert watched.core.deadline_ms() is not None


def test_after_a_wrong_fencing_the_rule_is_off_for_one_session() -> None:
    watched = Watched()
    watched.close_stream()
    watched.probe(Refused())
    assert watched.probe(Refused())
    watched.core.on_heartbeat(1, uuid(1), watched.now_ms)
    wrong_ms = watched.now_ms
    watched.close_stream()
    while watched.now_ms < wrong_ms + SESSION_MS - 500:
        assert watched.probe(Refused()) == []
    watched.now_ms = wrong_ms + SESSION_MS
    watched.core.on_heartbeat(1, uuid(1), watched.now_ms)
    watched.close_stream()
    watched.probe(Refused())
    assert watched.probe(Refused())


def test_on_activation_only_those_that_open_no_stream_are_probed() -> None:
    core = FailureDetector(SESSION_MS)
    targets = {b: Target(broker_id=b, incarnation_id=uuid(b), address=Address("h", b)) for b in (1, 2)}
    for target in targets.values():
        core.on_registered(target, 0)
    assert core.on_timer(0) == [Probe(targets[1]), Probe(targets[2])]
    for broker_id, target in targets.items():
        core.on_probed(target, Answered(broker_id, uuid(broker_id)), 0)
    core.on_active([1, 2], None, 1_000)
    core.on_heartbeat(1, uuid(1), 1_100)
    assert core.deadline_ms() == 1_300
    assert core.on_timer(1_299) == []
    assert core.on_timer(1_300) == [Probe(targets[2])]
    core.on_inactive()
    assert core.on_probed(targets[2], Refused(), 1_300) == []
    assert core.deadline_ms() is None


def test_on_activation_the_former_leader_is_probed_at_once_and_fenced_by_proof_alone() -> None:
    watched = Watched()
    watched.core.on_active([1], 1, watched.now_ms)
    assert watched.core.deadline_ms() == watched.now_ms
    assert watched.probe(Refused()) == []
    assert [type(effect) for effect in watched.probe(Refused())] == [ProvenDead]


def test_a_former_leader_that_only_resigned_is_left_alone() -> None:
    watched = Watched()
    watched.core.on_active([1], 1, watched.now_ms)
    assert watched.probe(ALIVE) == []
    watched.core.on_heartbeat(1, uuid(1), watched.now_ms)
    assert watched.core.deadline_ms() is None


def test_a_new_incarnation_is_reached_ever_more_seldom_and_kept() -> None:
    watched = Watched(reached=False)
    times = []
    for _ in range(8):
        watched.probe(SILENT)
        times.append(watched.now_ms)
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]


def test_a_probe_of_a_replaced_incarnation_is_ignored() -> None:
    watched = Watched()
    watched.close_stream()
    watched.core.on_timer(watched.now_ms)
    watched.core.on_registered(Target(broker_id=1, incarnation_id=uuid(2), address=ME.address), 0)
    assert watched.core.on_probed(ME, REBORN, 0) == []


def test_another_process_that_wants_the_id_raises_suspicion() -> None:
    watched = Watched()
    watched.core.on_id_wanted(1, 0)
    assert [type(effect) for effect in watched.probe(REBORN)] == [ProvenDead]
    watched.core.on_id_wanted(5, 0)  # not a registered broker


def take(step: str, watched: Watched) -> list[DetectorEffect]:
    match step:
        case "stream closed":
            watched.close_stream()
        case "heartbeat":
            watched.core.on_heartbeat(1, uuid(1), watched.now_ms)
        case "active":
            watched.core.on_active([1], None, watched.now_ms)
        case "alive" | "silent" if watched.core.deadline_ms() is not None:
            return watched.probe(ALIVE if step == "alive" else SILENT)
    return []


@given(st.lists(st.sampled_from(["stream closed", "heartbeat", "alive", "silent", "active"]), max_size=30))
def test_without_a_refusal_or_another_process_no_broker_is_ever_proven_dead(steps: list[str]) -> None:
    watched = Watched()
    for step in steps:
        assert take(step, watched) == []
