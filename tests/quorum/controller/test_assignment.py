"""The merge of a reassignment, its end, and the way back: tables, and every walk of a partition through them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from controller_world import uuid
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from test_election import TOPIC, brokers

from quorumlog_quorum.controller.partitions.election import TopicRules, Wish, partition_change
from quorumlog_quorum.controller.partitions.reassignment import Assignment, cancelled, merged, present, settled
from quorumlog_quorum.metadata.changes import changed_partition
from quorumlog_quorum.metadata.check import effective_min_isr
from quorumlog_quorum.metadata.registration import UNASSIGNED, PartitionRegistration
from tests import rules
from tests.parts import few

A = Assignment

MERGES = [
    ("one for another", A((1, 2, 3)), (1, 2, 4), A((1, 2, 4, 3), (4,), (3,))),
    ("all others", A((1, 2)), (3, 4), A((3, 4, 1, 2), (3, 4), (1, 2))),
    ("more", A((1, 2)), (1, 2, 3), A((1, 2, 3), (3,))),
    ("fewer", A((1, 2, 3)), (3,), A((3, 1, 2), (), (1, 2))),
    ("another order", A((1, 2, 3)), (3, 1, 2), A((3, 1, 2))),
    ("the same", A((1, 2, 3)), (1, 2, 3), A((1, 2, 3))),
    ("the same as under way", A((4, 1, 2), (4,), (2,)), (4, 1), A((4, 1, 2), (4,), (2,))),
    ("another newcomer", A((1, 2, 4, 3), (4,), (3,)), (1, 2, 5), A((1, 2, 5, 4, 3), (5, 4), (4, 3))),
    ("one newcomer stays one", A((1, 2, 4, 3), (4,), (3,)), (1, 4), A((1, 4, 2, 3), (4,), (2, 3))),
    ("back to the first", A((1, 2, 4, 3), (4,), (3,)), (1, 2, 3), A((1, 2, 3, 4), (4,), (4,))),
]


@rules.rule("kraft 9.17")
@pytest.mark.parametrize(("now", "target", "want"), [c[1:] for c in MERGES], ids=[c[0] for c in MERGES])
def test_merged(now: Assignment, target: tuple[int, ...], want: Assignment) -> None:
    assert merged(now, target) == want
    assert merged(want, target) == want, "the same target again changes nothing"
    assert want.target == target
    assert set(cancelled(want).replicas) == set(now.before)


ENDS: list[tuple[str, Assignment, tuple[int, ...], tuple[int, ...], int, bool]] = [
    ("nothing is under way", A((1, 2)), (1, 2), (), 1, False),
    ("the newcomer is missing", A((1, 4, 3), (4,), (3,)), (1, 3), (), 1, False),
    ("the newcomer is there", A((1, 4, 3), (4,), (3,)), (1, 4), (), 2, True),
    ("one of two newcomers is missing", A((4, 5, 1), (4, 5), (1,)), (1, 4), (), 1, False),
    ("too few would stay", A((1, 2, 4, 3), (4,), (3,)), (4, 3), (), 2, False),
    ("too few stay, and the one that goes holds nothing", A((1, 2, 4, 3), (4,), (3,)), (4,), (), 2, True),
    ("too few stay, and the one that goes is eligible", A((1, 2, 4, 3), (4,), (3,)), (4,), (3,), 2, False),
    ("a minimum above the replicas is all of them", A((1, 4, 3), (4,), (3,)), (1, 4, 3), (), 9, True),
    ("replicas only go", A((1, 2, 3), (), (3,)), (1, 2, 3), (), 2, True),
    ("replicas only go, and none would stay in sync", A((1, 2, 3), (), (3,)), (3,), (), 1, False),
    ("replicas only come", A((1, 2, 3), (3,)), (1, 3), (), 3, True),
    ("a newcomer that is not wanted any more", A((1, 2, 4), (4,), (4,)), (1, 2), (), 2, True),
]


@rules.rule("kraft 9.13", "kraft 9.14")
@pytest.mark.parametrize(
    ("now", "isr", "elr", "min_isr", "ends"), [case[1:] for case in ENDS], ids=[case[0] for case in ENDS]
)
def test_settled(now: Assignment, isr: tuple[int, ...], elr: tuple[int, ...], min_isr: int, ends: bool) -> None:
    assert settled(now, isr, (*isr, *elr), min_isr) == (A(now.target) if ends else now)


def partition(assignment: Assignment, isr: tuple[int, ...], leader: int, elr: tuple[int, ...] = ()) -> Any:
    return PartitionRegistration(
        replicas=assignment.replicas,
        directories=tuple(uuid(broker_id) for broker_id in assignment.replicas),
        isr=isr,
        leader=leader,
        leader_epoch=5,
        partition_epoch=8,
        eligible_leader_replicas=elr,
        adding_replicas=assignment.adding,
        removing_replicas=assignment.removing,
    )


RULES = TopicRules(min_insync_replicas=2, unclean=False, balanced=False, synced=True)
MOVES_AWAY = A((2, 4, 1), (4,), (1,))

CHANGES: list[tuple[str, Any, Wish, tuple[int, ...], int, tuple[int, ...], tuple[int, ...], int]] = [
    # what; before; wish; and then: replicas, leader, ISR, adding, how much the leader epoch moved
    ("begins", partition(A((1, 2)), (1, 2), 1), Wish(assignment=MOVES_AWAY), (2, 4, 1), 1, (1, 2), (4,), 0),
    ("ends; the leader goes", partition(MOVES_AWAY, (1, 2), 1), Wish(isr=(1, 2, 4)), (2, 4), 2, (2, 4), (), 1),
    ("ends; the leader stays", partition(MOVES_AWAY, (1, 2), 2), Wish(isr=(1, 2, 4)), (2, 4), 2, (2, 4), (), 1),
    ("only an order", partition(A((1, 2)), (1, 2), 1), Wish(assignment=A((2, 1))), (2, 1), 1, (1, 2), (), 0),
    ("only more", partition(A((1, 2, 4), (4,)), (1, 2), 1), Wish(isr=(1, 2, 4)), (1, 2, 4), 1, (1, 2, 4), (), 0),
    ("only fewer", partition(A((1, 2, 3)), (1, 2, 3), 3), Wish(assignment=A((1, 2, 3), (), (3,))), (1, 2), 1, (1, 2),
     (), 1),
    ("cancelled", partition(MOVES_AWAY, (1, 2), 1), Wish(assignment=A((2, 1))), (2, 1), 1, (1, 2), (), 1),
    ("cancelled; the leader goes", partition(MOVES_AWAY, (1, 2, 4), 4), Wish(assignment=A((2, 1))), (2, 1), 2, (1, 2),
     (), 1),
]  # fmt: skip


@rules.rule("kraft 9.15")
@pytest.mark.parametrize(
    ("before", "wish", "replicas", "leader", "isr", "adding", "epochs"),
    [case[1:] for case in CHANGES],
    ids=[case[0] for case in CHANGES],
)
def test_a_change_of_the_replicas(
    before: Any,
    wish: Wish,
    replicas: tuple[int, ...],
    leader: int,
    isr: tuple[int, ...],
    adding: tuple[int, ...],
    epochs: int,
) -> None:
    record = partition_change(TOPIC, 0, before, brokers(1, 2, 3, 4), RULES, wish)
    assert record is not None
    after = changed_partition(before, record)
    assert (after.replicas, after.leader, after.isr, after.adding_replicas) == (replicas, leader, isr, adding)
    assert after.leader_epoch == before.leader_epoch + epochs
    assert after.directories == tuple(uuid(broker_id) for broker_id in replicas)
    assert partition_change(TOPIC, 0, after, brokers(1, 2, 3, 4), RULES) is None


def test_a_newcomer_with_several_directories_has_none_yet() -> None:
    known = brokers(1, 2, 3, 4)
    known = known.set(4, replace(known[4], log_directories=(uuid(4), uuid(44))))
    record = partition_change(TOPIC, 0, partition(A((1, 2)), (1, 2), 1), known, RULES, Wish(assignment=MOVES_AWAY))
    assert record is not None and record.directories is not None
    assert record.directories.directories == (uuid(2), UNASSIGNED, uuid(1))


def test_an_unclean_leader_is_no_newcomer_while_another_replica_lives() -> None:
    rules = TopicRules(min_insync_replicas=1, unclean=True, balanced=False, synced=True)
    before = partition(A((4, 3, 1), (4,), (1,)), (), -1)
    for alive, want in (((3, 4), 3), ((4,), 4)):
        record = partition_change(TOPIC, 0, before, brokers(*alive), rules)
        assert record is not None and record.leader == want


class Partition(RuleBasedStateMachine):
    """One partition on brokers 1 to 4 that die and return, with targets that begin, replace others or are cancelled.

    A copy is a replica that holds every committed record: a member of the ISR or of the ELR.
    """

    @initialize(order=st.permutations((1, 2, 3, 4)), count=st.integers(1, 4), min_isr=st.integers(1, 3))
    def create(self, order: list[int], count: int, min_isr: int) -> None:
        self.alive = {1, 2, 3, 4}
        self.topic = TopicRules(min_insync_replicas=min_isr, unclean=False, balanced=False, synced=True)
        replicas = tuple(order[:count])
        self.now: PartitionRegistration = partition(A(replicas), replicas, replicas[0])

    def change(self, wish: Wish) -> None:
        record = partition_change(TOPIC, 0, self.now, brokers(*self.alive), self.topic, wish)
        if record is not None:
            self.now = changed_partition(self.now, record)

    @property
    def copies(self) -> set[int]:
        return {*self.now.isr, *self.now.eligible_leader_replicas}

    @property
    def enough(self) -> int:
        return effective_min_isr(self.topic.min_insync_replicas, present(self.now).target)

    def keeps_copies(self, wish: Wish) -> None:
        """No change of the replicas takes a copy away if fewer than the minimum are left then."""
        before, way = self.copies, present(self.now)
        self.change(wish)
        if wish.assignment is None and way.under_way and not present(self.now).under_way:
            assert self.now.replicas == way.target
            assert {*way.target} - {*way.before} <= {*self.now.isr}, "it ended before the newcomers were there"
        lost = {broker_id for broker_id in before if broker_id not in self.now.replicas}
        assert not lost or len(self.now.isr) >= self.enough, (lost, self.now)

    @rule(order=st.permutations((1, 2, 3, 4)), count=st.integers(1, 4))
    def reassign(self, order: list[int], count: int) -> None:
        before = present(self.now)
        self.keeps_copies(Wish(assignment=merged(before, tuple(order[:count]))))
        assert present(self.now).target == tuple(order[:count])
        if present(self.now).under_way:
            assert set(present(self.now).before) == set(before.before)

    @rule()
    def cancel(self) -> None:
        """As the request does it: refused where it would take copies that are needed."""
        after = cancelled(present(self.now))
        stay = [broker_id for broker_id in self.now.isr if broker_id in after.replicas]
        if present(self.now).under_way and len(stay) >= effective_min_isr(
            self.topic.min_insync_replicas, after.replicas
        ):
            self.keeps_copies(Wish(assignment=after))
            assert not present(self.now).under_way

    @rule(broker_id=st.integers(1, 4))
    def die(self, broker_id: int) -> None:
        self.alive.discard(broker_id)
        self.keeps_copies(Wish())

    @rule(broker_id=st.integers(1, 4))
    def come_back(self, broker_id: int) -> None:
        self.alive.add(broker_id)
        self.keeps_copies(Wish())

    @rule(broker_id=st.integers(1, 4))
    def join(self, broker_id: int) -> None:
        if self.now.leader != -1 and broker_id in self.alive and broker_id in self.now.replicas:
            self.keeps_copies(Wish(isr=(*(b for b in self.now.isr if b != broker_id), broker_id)))

    @rule(broker_id=st.integers(1, 4))
    def lag(self, broker_id: int) -> None:
        if broker_id in self.now.isr and broker_id != self.now.leader:
            self.keeps_copies(Wish(isr=tuple(b for b in self.now.isr if b != broker_id)))

    @invariant()
    def is_sound(self) -> None:
        if not hasattr(self, "now"):
            return
        now = self.now
        assert {*now.isr, *now.eligible_leader_replicas, *now.adding_replicas, *now.removing_replicas} <= {
            *now.replicas
        }
        assert len({*now.replicas}) == len(now.replicas) == len(now.directories)
        assert present(now).target and self.copies, now
        assert (now.leader == -1) == (not now.isr)

    @invariant()
    def ends_once_all_are_there(self) -> None:
        """From every state: brokers return, followers catch up, and nobody has to do anything else."""
        if not hasattr(self, "now"):
            return
        now, alive = self.now, self.alive
        self.alive = {1, 2, 3, 4}
        self.change(Wish())
        for broker_id in self.now.replicas:
            if broker_id in self.now.replicas and broker_id not in self.now.isr:
                self.change(Wish(isr=(*self.now.isr, broker_id)))
        assert not present(self.now).under_way, self.now
        assert {*self.now.isr} == {*self.now.replicas} == {*present(now).target}
        self.now, self.alive = now, alive


TestPartition = Partition.TestCase
TestPartition.settings = settings(max_examples=few(60), stateful_step_count=25, deadline=None)
