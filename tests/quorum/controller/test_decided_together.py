"""Settings by which leaders and the controller decide: one value, in the metadata, whatever the files say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from controller_world import World, cluster, code

import quorumlog_quorum.controller
from quorumlog.configs.broker import DECIDED_TOGETHER
from quorumlog.configs.topic import TopicConfig
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog_quorum.metadata.image import BROKER_RESOURCE
from quorumlog_quorum.metadata.topic_settings import DEFAULT, SET_ON_ALL_BROKERS, Layers, ignored
from tests.rules import rule

SET, DELETE = 0, 1
OTHERS = {"durability": "replicated", "unclean.leader.election.enable": "true", "unclean.recovery.strategy": "Balanced"}


def alter(world: World, key: str, value: str | None, broker: str = "") -> ErrorCode:
    change = AlterableConfig(name=key, operation=DELETE if value is None else SET, value=value or "")
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=broker, configs=(change,))
    return code(world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results[0])


def of_all(world: World) -> dict[str, str]:
    return dict(world.tip.configs[BROKER_RESOURCE, ""])


@rule("kraft 9.31")
def test_the_first_controller_writes_what_its_file_says() -> None:
    world = cluster(1, min_insync_replicas=2, decided_together={"min.insync.replicas": "2", **OTHERS})
    assert of_all(world) == {"min.insync.replicas": "2", **OTHERS}


def test_a_file_with_less_adds_nothing_and_one_with_more_adds_what_is_missing() -> None:
    assert of_all(cluster(1)) == {"min.insync.replicas": "1"}
    world = cluster(1, decided_together={"durability": "replicated"})
    assert alter(world, "log.durability", "synced") is ErrorCode.NONE
    world.new_controller()
    assert of_all(world)["durability"] == "synced"


@rule("kraft 9.31")
def test_the_election_rules_get_what_a_file_allows() -> None:
    world = cluster(1, 2, decided_together={"unclean.leader.election.enable": "true"})
    world.create(replicas=(1, 2))
    world.fence(2)
    world.fence(1)
    world.start(2, incarnation=1)
    assert world.partition().leader == 2


@rule("kraft 9.31")
@pytest.mark.parametrize("key", sorted(DECIDED_TOGETHER))
def test_one_broker_has_no_value_of_its_own(key: str) -> None:
    world = cluster(1)
    assert alter(world, key, {"min.insync.replicas": "2", **OTHERS}[key], broker="1") is ErrorCode.INVALID_CONFIG
    assert (BROKER_RESOURCE, "1") not in world.tip.configs


@pytest.mark.parametrize("key", sorted(OTHERS))
@pytest.mark.parametrize("is_in_file", [True, False])
def test_what_is_taken_back_stays_away_whatever_the_next_controllers_file_says(key: str, is_in_file: bool) -> None:
    """Before, only the active controller's own file was asked, and another one brought the value back."""
    world = cluster(1, decided_together=OTHERS if is_in_file else {})
    if not is_in_file:
        assert alter(world, key, OTHERS[key]) is ErrorCode.NONE
    assert alter(world, key, None) is ErrorCode.NONE
    after = of_all(World(log=tuple(world.log), decided_together={"min.insync.replicas": "2", **OTHERS}))
    assert key not in after and after["min.insync.replicas"] == "1"


def test_what_was_never_set_does_not_come_from_a_later_controllers_file() -> None:
    """The cluster has run with the default, and commits by it."""
    world = cluster(1)
    assert of_all(World(log=tuple(world.log), decided_together=OTHERS)) == of_all(world)


def test_the_minimum_of_all_brokers_is_not_taken_back() -> None:
    assert alter(cluster(1), "min.insync.replicas", None) is ErrorCode.INVALID_CONFIG


def test_what_is_shown_is_what_is_in_force() -> None:
    world = cluster(1)
    world.create(replicas=(1,))
    layers = Layers(image=world.tip, node_id=1, file={"min.insync.replicas": "3", **OTHERS})
    shown = {one.name: (one.value, one.source) for one in layers.of_topic("t", only=DECIDED_TOGETHER)}
    assert shown == {
        "durability": ("synced", DEFAULT),
        "min.insync.replicas": ("1", SET_ON_ALL_BROKERS),
        "unclean.leader.election.enable": ("false", DEFAULT),
        "unclean.recovery.strategy": ("None", DEFAULT),
    }


def test_a_file_that_says_otherwise_is_told() -> None:
    world = cluster(1)
    assert list(ignored(world.tip, {"min.insync.replicas": "1", "durability": "replicated", "retention.ms": "5"})) == [
        ("log.durability", "replicated", "synced")
    ]


@rule("kraft 9.31")
def test_the_controller_reads_no_other_setting_of_topics() -> None:
    """Whatever else it comes to decide by has to be added to DECIDED_TOGETHER."""
    fields = {*TopicConfig.__slots__, "synced"}
    read = set()
    for path in Path(quorumlog_quorum.controller.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for maker in (one for one in functions if "TopicConfig" in ast.dump(one)):
            read |= {node.attr for node in ast.walk(maker) if isinstance(node, ast.Attribute)} & fields
    named = {"durability" if field == "synced" else field.replace("_", ".") for field in read}
    assert named == DECIDED_TOGETHER
