"""Target assignments, looked at when a coordinator has computed one: right ones, and one that is wrong in each way."""

from __future__ import annotations

from typing import Any

import pytest

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.target_assignments import COMPUTED, NAME, TargetAssignments
from quorumlog_broker.coordinator.groups.consumer import targets
from quorumlog_broker.coordinator.groups.consumer.assignors import assign_range, assign_uniform
from tests.broker.coordinator.consumer_world import ConsumerWorld, topic_id

FOO, BAR = topic_id("foo"), topic_id("bar")


def watched(**partitions: int) -> tuple[ConsumerWorld, TargetAssignments, Findings]:
    findings = Findings(lambda: 5)
    world, watch = ConsumerWorld(**partitions), TargetAssignments(findings)
    watch.listen(world.shard)
    return world, watch, findings


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_what_coordinators_compute(assignor: str) -> None:
    world, watch, findings = watched(foo=5, bar=1)
    world.enter("m1", "foo bar", server_assignor=assignor)
    world.enter("m2", "foo bar", server_assignor=assignor)
    world.enter("m3", "foo", server_assignor=assignor)
    assert watch.counts == {COMPUTED: 3} and not findings.found


@pytest.mark.parametrize(
    ("assigned", "words"),
    [
        ({"m1": {FOO: [0, 1]}, "m2": {FOO: [1, 2]}}, "m1 and m2 get"),
        ({"m1": {FOO: [0, 1]}, "m2": {}}, "given to nobody"),
        ({"m1": {FOO: [0, 1]}, "m2": {FOO: [2, 3]}}, "or do not exist"),
        ({"m1": {FOO: [0, 1]}, "m2": {FOO: [2], BAR: [0]}}, "does not subscribe"),
        ({"m1": {FOO: [0, 1, 2]}, "m2": {}}, "the members have"),
    ],
    ids=["twice", "not at all", "none of the topic", "not subscribed", "unfair"],
)
def test_what_is_wrong(assigned: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, _, findings = watched(foo=3, bar=1)
    world.enter("m1")

    def assign(*_: Any) -> Any:
        yield from ()
        return assigned

    monkeypatch.setattr(targets, "ASSIGNORS", {"uniform": assign, "range": assign})
    world.enter("m2")
    assert {one.name for one in findings.found} == {NAME}
    assert any(words in one.text for one in findings.found), findings.found


def test_with_range_each_topic_is_shared_equally_and_not_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    for assignor, is_fair in ((assign_range, True), (assign_uniform, False)):
        world, _, findings = watched(foo=3, bar=3)
        monkeypatch.setattr(targets, "preferred_assignor", lambda *_: "range")  # of what computes, not of what looks
        for member in ("m1", "m2"):
            world.enter(member, "foo bar", server_assignor="range" if assignor is assign_range else "uniform")
        assert (not findings.found) is is_fair
