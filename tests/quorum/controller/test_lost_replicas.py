"""A replica that its broker reports as LOST: another one leads, and it comes back with the log that it had."""

from __future__ import annotations

import pytest
from controller_world import World, cluster, uuid

from quorumlog.ids import NO_NODE, Uuid
from quorumlog.messages.controller import AssignReplicasToDirectoriesRequest, DirectoryAssignment
from quorumlog_quorum.metadata.registration import LOST
from tests.rules import rule


def assign(world: World, directory: Uuid, *, keeps_log: bool = False, broker_id: int = 1) -> None:
    wanted = DirectoryAssignment(
        topic_id=world.tip.topic_ids["t"], index=0, directory_id=directory, keeps_log=keeps_log
    )
    epoch = world.tip.brokers[broker_id].broker_epoch
    response = world.ask(
        AssignReplicasToDirectoriesRequest(broker_id=broker_id, broker_epoch=epoch, assignments=(wanted,))
    )
    assert response.results[0].error_code == 0


@rule("kraft 10.6")
def test_a_lost_leader_is_replaced_by_a_replica_in_sync() -> None:
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2, 3))
    before = world.partition()
    assign(world, LOST)
    after = world.partition()
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), before.leader_epoch + 1)
    assert after.directory(1) == LOST


@rule("kraft 10.6")
def test_a_lost_replica_joins_no_isr() -> None:
    """Its directory goes on to serve others, so nothing else keeps it out."""
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    assign(world, LOST)
    world.heartbeat(1)
    assert world.partition().isr == (2,)


@pytest.mark.parametrize(("durability", "elr"), [("synced", (1,)), ("replicated", ())])
def test_it_stays_eligible_where_what_it_acknowledged_is_on_its_disk(durability: str, elr: tuple[int, ...]) -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2), configs={"min.insync.replicas": "2", "durability": durability})
    assign(world, LOST)
    assert world.partition().eligible_leader_replicas == elr


BACK = [("with the log that it had", uuid(1), True, 1, ()), ("with a new log", uuid(1), False, NO_NODE, ())]


@pytest.mark.parametrize(("directory", "keeps_log", "leader", "elr"), [c[1:] for c in BACK], ids=[c[0] for c in BACK])
def test_the_only_replica_leads_again_with_its_old_log_and_never_with_a_new_one(
    directory: Uuid, keeps_log: bool, leader: int, elr: tuple[int, ...]
) -> None:
    world = cluster(1)
    world.create(replicas=(1,))
    assign(world, LOST)
    lost = world.partition()
    assert (lost.leader, lost.isr, lost.eligible_leader_replicas) == (NO_NODE, (), (1,))
    assign(world, directory, keeps_log=keeps_log)
    back = world.partition()
    assert (back.leader, back.eligible_leader_replicas, back.directory(1)) == (leader, elr, directory)


def test_a_claim_to_have_kept_the_log_counts_for_a_lost_replica_only() -> None:
    """Its directory is gone, so the log in another one is a copy."""
    world = World()
    world.start(1, log_directories=(uuid(1), uuid(11)))
    world.create(replicas=(1,))
    assign(world, uuid(66))
    assign(world, uuid(11), keeps_log=True)
    assert world.partition().leader == NO_NODE
