"""durability is raised from replicated to synced while brokers hold records in their page caches alone."""

from __future__ import annotations

import pytest
from controller_world import World, cluster, code, registration, uuid

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.messages.cluster import DeleteTopicsRequest, TopicQuery
from quorumlog_quorum.metadata.image import RAISED_RESOURCE
from tests.rules import rule

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1


def set_durability(world: World, value: str | None, kind: int = TOPIC, name: str = "t") -> None:
    change = AlterableConfig(name="durability", operation=DELETE if value is None else SET, value=value or "")
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
    assert code(world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results[0]) is ErrorCode.NONE


def replicated(kind: int = TOPIC) -> World:
    """Replicas 1, 2; the minimum is 2, so whoever leaves the ISR stays eligible."""
    world = cluster(1, 2)
    if kind == BROKER:
        set_durability(world, "replicated", BROKER, "")
    durability = {"durability": "replicated"} if kind == TOPIC else {}
    world.create(replicas=(1, 2), configs={"min.insync.replicas": "2", **durability})
    return world


def restart(world: World, incarnation: int, *, clean: bool = False) -> None:
    """Broker 2 ends and comes back."""
    epoch = world.tip.brokers[2].broker_epoch
    world.fence(2)
    world.heartbeat(1)
    world.ask(registration(2, incarnation, previous_broker_epoch=epoch if clean else -1))
    world.heartbeat(1)


def eligible(world: World) -> tuple[int, ...]:
    return world.partition().eligible_leader_replicas


RAISES = [
    ("of the topic", TOPIC, "synced", TOPIC, "t"),
    ("taken back from the topic", TOPIC, None, TOPIC, "t"),
    ("of all topics", BROKER, "synced", BROKER, ""),
    ("taken back from all topics", BROKER, None, BROKER, ""),
    ("of one that inherits", BROKER, "synced", TOPIC, "t"),
]


@rule("kraft 9.30")
@pytest.mark.parametrize(("begun", "value", "kind", "name"), [c[1:] for c in RAISES], ids=[c[0] for c in RAISES])
def test_a_broker_that_lost_its_page_cache_before_the_raise_is_not_eligible(
    begun: int, value: str | None, kind: int, name: str
) -> None:
    world = replicated(begun)
    world.fence(2)
    assert eligible(world) == (2,)
    set_durability(world, value, kind, name)
    restart(world, 1)
    assert eligible(world) == ()


@rule("kraft 9.30")
def test_one_that_had_not_heard_of_the_raise_is_not_eligible_either() -> None:
    world = replicated()
    set_durability(world, "synced")
    restart(world, 1)
    assert (world.partition().isr, eligible(world)) == ((1,), ())


@rule("kraft 9.30")
def test_the_next_controller_remembers_it() -> None:
    world = replicated()
    set_durability(world, "synced")
    world.new_controller()
    restart(world, 1)
    assert eligible(world) == ()


@rule("kraft 9.30")
def test_a_process_that_began_behind_the_raise_syncs_all_that_it_acknowledges() -> None:
    world = replicated()
    set_durability(world, "synced")
    restart(world, 1)
    world.heartbeat(2)
    assert code(world.alter((1, 2))) is ErrorCode.NONE
    restart(world, 2)
    assert eligible(world) == (2,)


def test_after_a_clean_stop_it_stays_eligible() -> None:
    world = replicated()
    set_durability(world, "synced")
    restart(world, 1, clean=True)
    assert eligible(world) == (2,)


@rule("kraft 9.30")
def test_a_failed_directory_takes_what_it_had_not_synced() -> None:
    world = replicated()
    set_durability(world, "synced")
    world.heartbeat(2, offline_directories=(uuid(2),))
    assert eligible(world) == ()


def test_a_topic_of_the_same_name_has_no_past() -> None:
    world = replicated()
    set_durability(world, "synced")
    assert (RAISED_RESOURCE, "t") in world.tip.configs
    world.ask(DeleteTopicsRequest(topics=(TopicQuery(name="t"),), timeout_ms=0))
    assert (RAISED_RESOURCE, "t") not in world.tip.configs
    world.create(replicas=(1, 2), configs={"min.insync.replicas": "2"})
    restart(world, 1)
    assert eligible(world) == (2,)
