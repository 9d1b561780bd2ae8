"""Invariants of what stays: states beside their level, acknowledged deletions, copies, known metadata."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from immutables import Map

from jepsen.checkers.findings import Findings
from jepsen.sim.incarnations.known_metadata import KnownMetadata
from jepsen.sim.invariants.metadata.level_states import LevelStates
from jepsen.sim.invariants.placement.reassignments import HELD_UP, ReassignmentInvariants
from jepsen.sim.invariants.replicas.deletions import DeletionInvariants
from quorumlog_quorum.metadata.image import EMPTY, Image, TopicImage
from quorumlog_quorum.metadata.registration import IMPORTING, RECOVERED, PartitionRegistration

ID = bytes(15) + b"\1"
NOWHERE = bytes(16)


def partition(isr: tuple[int, ...] = (1,), **more: Any) -> PartitionRegistration:
    replicas = more.pop("replicas", (1, 2, 3))
    return PartitionRegistration(replicas=replicas, directories=(NOWHERE,) * len(replicas), isr=isr, **more)


def image(of: PartitionRegistration | None = None, **more: Any) -> Image:
    topics = Map() if of is None else Map({ID: TopicImage("t", ID, Map({0: of}))})
    return Image(topics=topics, topic_ids=Map({"t": ID} if of else {}), **more)


def names(findings: Findings) -> list[str]:
    return [one.name for one in findings.found]


@pytest.mark.parametrize(
    ("state", "level", "is_broken"), [(IMPORTING, 3, True), (IMPORTING, 4, False), (RECOVERED, 1, False)]
)
def test_a_state_needs_its_level(state: int, level: int, is_broken: bool) -> None:
    findings = Findings(lambda: 0)
    states = LevelStates(findings)
    states.on_image(image(partition(leader_recovery_state=state), features=Map({"metadata.version": level})))
    assert names(findings) == ["states-have-their-level"] * is_broken and states.seen == (state == IMPORTING)


@pytest.mark.parametrize(
    ("start", "leads", "ready", "is_broken"),
    [(4, True, True, True), (5, True, True, False), (4, False, True, False), (4, True, False, False)],
    ids=["below", "at it", "a follower", "its log is not open"],
)
def test_a_leader_begins_at_an_acknowledged_deletion(start: int, leads: bool, ready: bool, is_broken: bool) -> None:
    findings = Findings(lambda: 0)
    deletions = DeletionInvariants(findings)
    core = SimpleNamespace(is_leader=leads, ready=ready, log_start=start)
    replica: Any = SimpleNamespace(core=core, key=(ID, 0), name="t-0")
    deletions.on_acked(f"t-0@{ID.hex()}", 5)
    deletions.after(SimpleNamespace(host="b1"), [replica])  # type: ignore[arg-type]
    assert findings.found == [], "not watched"
    deletions.watch()
    deletions.after(SimpleNamespace(host="b1"), [replica])  # type: ignore[arg-type]
    assert names(findings) == ["acknowledged-deletions-stay"] * is_broken


@pytest.mark.parametrize(
    ("isr", "elr", "held"), [((1,), (), 1), ((1, 2), (), 0), ((1,), (3,), 0)],
    ids=["nobody names the copy", "enough stay", "the ELR names it"],
)  # fmt: skip
def test_reassignments_that_a_killed_copy_holds_up_are_counted(
    isr: tuple[int, ...], elr: tuple[int, ...], held: int
) -> None:
    findings = Findings(lambda: 0)
    invariants = ReassignmentInvariants(findings)
    weak = Map({(2, "t"): Map({"durability": "replicated", "min.insync.replicas": "2"})})
    invariants.on_image(image(partition(isr), configs=weak))
    after = partition(isr, removing_replicas=(3,), eligible_leader_replicas=elr)
    invariants.on_image(image(after, configs=weak))
    assert invariants.counts[HELD_UP] == held and findings.found == []


def test_what_a_broker_knew_beyond_is_named() -> None:
    known = KnownMetadata()
    machine: Any = SimpleNamespace(host="b1", node=SimpleNamespace(loader=SimpleNamespace(image=EMPTY)))
    for found in (image(partition(partition_epoch=3), offset=9, epoch=2), image(offset=4, epoch=2)):
        machine.node.loader.image = found
        known.after(machine)  # of the second one a new process has read a part only
    assert known.beyond("b1", image(partition(partition_epoch=3))) == []
    assert known.beyond("b1", image(partition(partition_epoch=2))) == ["t-0 in epoch 3"]
    assert known.beyond("b1", EMPTY) == ["t-0 in epoch 3"] and known.beyond("b2", EMPTY) == []
