"""Elections of one partition: which replicas are valid, in which order, and the ISR, ELR and epochs that follow."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from controller_world import uuid
from immutables import Map

from quorumlog_quorum.controller.partitions.election import NOTHING, TopicRules, Wish, partition_change
from quorumlog_quorum.metadata.changes import changed_partition
from quorumlog_quorum.metadata.registration import RECOVERING, BrokerRegistration, PartitionRegistration
from tests.rules import rule

TOPIC = uuid(1)


def brokers(*alive: int) -> Map[int, BrokerRegistration]:
    """Brokers 1 to 4; those not named are fenced."""
    return Map(
        {
            broker_id: BrokerRegistration(
                broker_id=broker_id,
                incarnation_id=uuid(50 + broker_id),
                broker_epoch=0,
                endpoints=(),
                rack=None,
                fenced=broker_id not in alive,
                in_controlled_shutdown=False,
                log_directories=(uuid(broker_id),),
            )
            for broker_id in (1, 2, 3, 4)
        }
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """Before, the brokers alive, and after: leader, ISR, ELR, last known leader, recovering, leader epoch moved."""

    name: str
    isr: tuple[int, ...]
    leader: int
    elr: tuple[int, ...] = ()
    known: tuple[int, ...] = ()
    alive: tuple[int, ...]
    min_isr: int = 2
    unclean: bool = False
    wish: Wish = NOTHING
    then: tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], bool, bool]


ALL = (1, 2, 3)

CASES = [
    Case(name="nothing happens", isr=ALL, leader=1, alive=ALL, then=(1, ALL, (), (), False, False)),
    Case(name="a follower goes", isr=ALL, leader=1, alive=(1, 2), then=(1, (1, 2), (), (), False, False)),
    Case(name="the leader goes", isr=ALL, leader=1, alive=(2, 3), then=(2, (2, 3), (), (), False, True)),
    Case(
        name="replica order, not ISR order, decides",
        isr=(3, 2, 1),
        leader=1,
        alive=(2, 3),
        then=(2, (3, 2), (), (), False, True),
    ),
    Case(name="below the minimum", isr=(1, 2), leader=1, alive=(1,), then=(1, (1,), (2,), (), False, False)),
    Case(
        name="the ELR grows in replica order",
        isr=(1, 3),
        leader=1,
        elr=(),
        alive=(3,),
        then=(3, (3,), (1,), (), False, True),
    ),
    Case(name="the last one goes", isr=(1,), leader=1, elr=(2,), alive=(), then=(-1, (), (1, 2), (1,), False, True)),
    Case(
        name="one of the ELR comes back",
        isr=(),
        leader=-1,
        elr=(1, 2),
        known=(1,),
        alive=(2, 3),
        then=(2, (2,), (1,), (), False, True),
    ),
    Case(
        name="another replica comes back",
        isr=(),
        leader=-1,
        elr=(1, 2),
        known=(1,),
        alive=(3,),
        then=(-1, (), (1, 2), (1,), False, False),
    ),
    Case(
        name="another replica, and unclean is allowed",
        isr=(),
        leader=-1,
        elr=(1, 2),
        known=(1,),
        alive=(3,),
        unclean=True,
        then=(3, (3,), (), (), True, True),
    ),
    Case(
        name="unclean is allowed, and not needed",
        isr=(),
        leader=-1,
        elr=(2,),
        known=(1,),
        alive=ALL,
        unclean=True,
        then=(2, (2,), (), (), False, True),
    ),
    Case(
        name="the last known leader",
        isr=(),
        leader=-1,
        known=(3,),
        alive=(1, 3),
        then=(3, (3,), (), (), True, True),
    ),
    Case(
        name="the last known leader may lack records, and others are eligible, but away",
        isr=(),
        leader=-1,
        elr=(2,),
        known=(1,),
        alive=(1, 3),
        then=(-1, (), (2,), (1,), False, False),
    ),
    Case(
        name="the last known leader is away",
        isr=(),
        leader=-1,
        known=(3,),
        alive=(1, 2),
        then=(-1, (), (), (3,), False, False),
    ),
    Case(
        name="may lack records: not eligible, still last known",
        isr=(1,),
        leader=1,
        alive=(),
        wish=Wish(not_eligible=(1,)),
        then=(-1, (), (), (1,), False, True),
    ),
    Case(
        name="has lost everything: neither",
        isr=(1,),
        leader=1,
        alive=(),
        wish=Wish(emptied=(1,)),
        then=(-1, (), (), (), False, True),
    ),
    Case(
        name="shrink by the leader",
        isr=ALL,
        leader=1,
        alive=ALL,
        wish=Wish(isr=(1,)),
        then=(1, (1,), (2, 3), (), False, False),
    ),
    Case(
        name="expand to the minimum",
        isr=(1,),
        leader=1,
        elr=(2, 3),
        alive=ALL,
        wish=Wish(isr=(1, 3)),
        then=(1, (1, 3), (), (), False, False),
    ),
    Case(
        name="a minimum above the replicas counts as all of them",
        isr=ALL,
        leader=1,
        alive=ALL,
        min_isr=9,
        then=(1, ALL, (), (), False, False),
    ),
    Case(
        name="a directory offline",
        isr=ALL,
        leader=1,
        alive=ALL,
        wish=Wish(directories=(uuid(99), uuid(2), uuid(3))),
        then=(2, (2, 3), (), (), False, True),
    ),
]


@rule("kraft 9.7", "kraft 9.8", "kraft 9.9")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_partition_change(case: Case) -> None:
    before = PartitionRegistration(
        replicas=ALL,
        directories=(uuid(1), uuid(2), uuid(3)),
        isr=case.isr,
        leader=case.leader,
        leader_epoch=5,
        partition_epoch=8,
        eligible_leader_replicas=case.elr,
        last_known_elr=case.known,
    )
    rules = TopicRules(min_insync_replicas=case.min_isr, unclean=case.unclean, balanced=False, synced=True)
    record = partition_change(TOPIC, 0, before, brokers(*case.alive), rules, case.wish)
    after = before if record is None else changed_partition(before, record)
    assert case.then == (
        after.leader,
        after.isr,
        after.eligible_leader_replicas,
        after.last_known_elr,
        after.leader_recovery_state == 1,
        after.leader_epoch == before.leader_epoch + 1,
    )
    assert after.partition_epoch == before.partition_epoch + (record is not None)
    again = partition_change(TOPIC, 0, after, brokers(*case.alive), rules)
    assert again is None, "what was decided stays decided"


def test_each_unclean_election_is_told_by_its_record() -> None:
    """Also the second one in a row, where the first leader died before it had recovered."""
    partition = PartitionRegistration(
        replicas=ALL,
        directories=tuple(uuid(broker_id) for broker_id in ALL),
        isr=(),
        leader=-1,
        leader_recovery_state=RECOVERING,
        leader_epoch=3,
        partition_epoch=8,
        eligible_leader_replicas=(),
        last_known_elr=(3,),
        removing_replicas=(),
        adding_replicas=(),
    )
    rules = TopicRules(min_insync_replicas=2, unclean=False, balanced=False, synced=True)
    record = partition_change(TOPIC, 0, partition, brokers(2, 3), rules)
    assert record is not None and (record.leader, record.leader_recovery_state) == (3, RECOVERING)
