"""UpdateFeatures: a level is finalized only where every node supports it, and falls only where nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import CLUSTER, World, code, registration, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import FeatureUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from quorumlog.messages.cluster import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ReplicaAssignment,
    TopicQuery,
)
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.controller import RegisterControllerRequest
from quorumlog.messages.imports import BeginImportRequest
from quorumlog.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterControllerRecord,
)
from quorumlog_quorum.metadata import downgrade
from quorumlog_quorum.metadata.features import LATEST_LEVEL, OTHERS_LEVEL, SUPPORTED
from quorumlog_quorum.metadata.frame import differs_between
from quorumlog_quorum.metadata.image_diff import delta_from_empty
from quorumlog_quorum.metadata.registration import RECOVERY_STATES
from tests.rules import rule

MV, GV, TV, JV = "metadata.version", "group.version", "transaction.version", "joint.version"
MIN_ISR = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1")
AT_LEVEL_1 = (MIN_ISR,)
AT_LEVEL_2 = (FeatureLevelRecord(name=MV, level=2), MIN_ISR)


def up_to(level: int) -> tuple[FeatureRange, ...]:
    return (FeatureRange(name=MV, min_level=1, max_level=level),)


def controller(
    node_id: int, incarnation: int = 0, features: tuple[FeatureRange, ...] = SUPPORTED, **changes: Any
) -> RegisterControllerRequest:
    fields: dict[str, Any] = {
        "controller_id": node_id,
        "cluster_id": CLUSTER,
        "incarnation_id": uuid(20_000 + 100 * node_id + incarnation),
        "endpoints": (Endpoint(name="INTERNAL", host="127.0.0.1", port=9000 + node_id),),
        "features": features,
    }
    return RegisterControllerRequest(**fields | changes)


def update(world: World, *updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesResponse:
    wanted = tuple(FeatureUpdate(name=name, level=level, upgrade_type=kind) for name, level, kind in updates)
    response = world.ask(UpdateFeaturesRequest(updates=wanted, timeout_ms=1_000, validate_only=validate_only))
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def upgrade(world: World, level: int = LATEST_LEVEL, **options: Any) -> UpdateFeaturesResponse:
    return update(world, (MV, level, 1), **options)


def downgraded(world: World, level: int) -> UpdateFeaturesResponse:
    """With every other feature that is on turned off: the lower levels have no place for them."""
    others = [(name, 0, 2) for name in (GV, JV, TV) if world.tip.features.get(name, 0)]
    return update(world, (MV, level, 2), *others)


def at_level_2(*controllers: int, brokers: tuple[int, ...] = (1,)) -> World:
    """The voters 1 to 3, of which these have announced themselves."""
    world = World(log=AT_LEVEL_2)
    world.driver.voter_ids = (1, 2, 3)
    for broker_id in brokers:
        world.start(broker_id)
    for node_id in controllers:
        world.ask(controller(node_id))
    return world


@rule("kraft 12.6")
def test_a_level_rises_and_the_log_learns_the_controllers_ranges_in_the_same_batch() -> None:
    world = at_level_2(1, 2, 3)
    assert not world.tip.controllers, "level 2 has no record of them"
    batches = len(world.driver.batches)
    response = upgrade(world)
    assert code(response) is ErrorCode.NONE and [result.error_code for result in response.results] == [0]
    assert world.driver.batches[batches:] == [4]
    assert world.log[-4] == FeatureLevelRecord(name=MV, level=LATEST_LEVEL)
    assert [type(record) for record in world.log[-3:]] == [RegisterControllerRecord] * 3
    assert sorted(world.tip.controllers) == [1, 2, 3] and world.tip.metadata_version == LATEST_LEVEL


@rule("kraft 12.5")
def test_a_controller_registers_itself_where_the_level_has_a_record_and_once_per_process() -> None:
    world = World()
    world.ask(controller(1))
    assert world.tip.controllers[1].features == SUPPORTED
    before = len(world.log)
    world.ask(controller(1))
    assert len(world.log) == before
    world.ask(controller(1, 1))
    assert len(world.log) == before + 1 and world.tip.controllers[1].incarnation_id == uuid(20_101)
    again = delta_from_empty(world.tip).apply(world.tip.offset, world.tip.epoch)
    assert again == world.tip and again.state_hash == world.tip.state_hash, "a snapshot has it"


REFUSED_CONTROLLERS = [
    ("another cluster", {"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
    ("no incarnation", {"incarnation_id": b""}, ErrorCode.INVALID_REGISTRATION),
    ("a range twice", {"features": SUPPORTED * 2}, ErrorCode.INVALID_REGISTRATION),
    (
        "a range upside down",
        {"features": (FeatureRange(name=MV, min_level=3, max_level=2),)},
        ErrorCode.INVALID_REGISTRATION,
    ),
    ("older software", {"features": up_to(2)}, ErrorCode.UNSUPPORTED_VERSION),
]


@pytest.mark.parametrize(
    ("changes", "expected"), [c[1:] for c in REFUSED_CONTROLLERS], ids=[c[0] for c in REFUSED_CONTROLLERS]
)
def test_a_controller_is_refused(changes: dict[str, Any], expected: ErrorCode) -> None:
    world = World()
    with pytest.raises(ApiError) as raised:
        world.ask(controller(1, **changes))
    assert raised.value.code is expected and not world.tip.controllers and not world.core.state.announced.controllers


def refusal(world: World, response: UpdateFeaturesResponse) -> str:
    assert code(response) is ErrorCode.INVALID_UPDATE_VERSION
    assert not any(isinstance(record, FeatureLevelRecord) for record in world.log[2:]), "nothing is written"
    return response.error_message


@rule("kraft 12.2")
def test_a_voter_that_has_not_said_what_it_supports_holds_the_upgrade_back() -> None:
    world = at_level_2(1, 2)
    assert "controller 3 has not said which levels it supports" in refusal(world, upgrade(world))
    world.ask(controller(3))
    assert code(upgrade(world)) is ErrorCode.NONE


@rule("kraft 12.4")
def test_what_controllers_said_is_forgotten_with_the_leadership() -> None:
    world = at_level_2(1, 2, 3)
    world.new_controller()
    assert "controller 1 has not said" in refusal(world, upgrade(world))


@rule("kraft 12.3")
def test_an_older_controller_holds_the_upgrade_back_voter_or_not() -> None:
    world = at_level_2(1, 2, 3)
    world.ask(controller(7, features=up_to(2)))
    said = refusal(world, upgrade(world))
    assert "controller 7 supports metadata.version from level 1 to 2: start it with newer software first" in said


@rule("kraft 12.1")
@pytest.mark.parametrize("fenced", [False, True])
def test_an_older_broker_holds_the_upgrade_back_also_while_it_is_fenced(fenced: bool) -> None:
    world = at_level_2(1, 2, 3, brokers=())
    world.start(1, features=up_to(2))
    if fenced:
        world.fence(1)
    name = "broker 1 (fenced)" if fenced else "broker 1"
    assert f"{name} supports metadata.version from level 1 to 2" in refusal(world, upgrade(world))


@rule("kraft 12.3")
def test_a_controller_that_left_is_forgotten_when_the_level_rises() -> None:
    """It is registered from when the level was 3 before, and is no voter any more."""
    world = World(log=(*AT_LEVEL_2[1:], FeatureLevelRecord(name=MV, level=3)))
    world.ask(controller(9))
    world.new_controller()
    assert code(downgraded(world, 2)) is ErrorCode.NONE
    assert world.log[-2] == UnregisterControllerRecord(controller_id=9)
    assert code(upgrade(world)) is ErrorCode.NONE and not world.tip.controllers


def test_a_cluster_from_before_there_were_levels_is_raised_from_what_brokers_said() -> None:
    world = World(log=AT_LEVEL_1)
    world.start(1)
    world.start(2, features=())
    assert "broker 2 supports metadata.version from level 1 to 1" in refusal(world, upgrade(world, 2))
    world.ask(registration(2))
    assert code(upgrade(world, 2)) is ErrorCode.NONE
    assert [broker.features for broker in world.tip.sorted_brokers()] == [SUPPORTED, SUPPORTED]
    assert all(not broker.fenced for broker in world.tip.sorted_brokers()), "nothing else of them has changed"


@rule("kraft 12.4")
def test_what_a_brokers_earlier_process_said_does_not_count() -> None:
    world = World(log=AT_LEVEL_1)
    world.start(1)
    world.fence(1)
    world.now_ms += 10_000
    world.start(1, 1, features=())
    assert "broker 1 supports metadata.version from level 1 to 1" in refusal(world, upgrade(world, 2))


@rule("kraft 12.7")
@pytest.mark.parametrize("level", [1, 2])
def test_a_downgrade_forgets_what_can_be_told_again_and_keeps_the_rest(level: int) -> None:
    world = World()
    world.driver.voter_ids = (1,)
    world.start(1)
    world.create(configs={"retention.ms": "5"})
    world.ask(controller(1))
    topics, configs = world.tip.topics, world.tip.configs
    assert code(downgraded(world, level)) is ErrorCode.NONE
    assert world.tip.metadata_version == level and not world.tip.controllers
    assert (world.tip.topics, world.tip.configs) == (topics, configs)
    assert bool(world.tip.brokers[1].features) is (level == 2)
    assert code(upgrade(world)) is ErrorCode.NONE, "what nodes told this controller is known still"
    assert world.tip.brokers[1].features == SUPPORTED and list(world.tip.controllers) == [1]


@rule("kraft 12.8")
def test_a_downgrade_that_would_lose_metadata_is_refused_with_what_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A record of a level to come, in place of the next one that holds what cannot be told again."""
    rule = downgrade.Rule(obstacles=lambda image: iter([f"{len(image.brokers)} wonders"]))
    monkeypatch.setattr(downgrade, "RULES", {**downgrade.RULES, RegisterControllerRecord: rule})
    world = World()
    world.start(1)
    for kind in (2, 3):
        response = update(world, (MV, 2, kind))
        assert (
            code(response) is ErrorCode.INVALID_UPDATE_VERSION and "cannot express 1 wonders" in response.error_message
        )
    assert world.tip.metadata_version == LATEST_LEVEL


@rule("kraft 12.7")
def test_every_record_that_a_level_brought_has_a_rule_for_the_way_back() -> None:
    for level in range(1, LATEST_LEVEL):
        assert set(differs_between(level, LATEST_LEVEL)) <= set(downgrade.RULES)
    assert set(differs_between(1, LATEST_LEVEL)) == set(downgrade.RULES)


@rule("kraft 12.18")
def test_every_level_brought_something_that_has_a_rule_for_the_way_back() -> None:
    """A level that brought no record and no field brought values or states, which `STATES` has to name."""
    for level in range(2, LATEST_LEVEL + 1):
        assert differs_between(level - 1, level) or level in downgrade.STATES, f"what did level {level} bring?"
    assert set(downgrade.STATES) == {level for level in RECOVERY_STATES.values() if level > 1}


SINCE = [(state, level) for state, level in RECOVERY_STATES.items() if level > 1]


@rule("kraft 12.18")
@pytest.mark.parametrize(("state", "level"), SINCE)
def test_no_level_falls_below_the_one_that_brought_the_state_of_a_partition(state: int, level: int) -> None:
    world = World()
    world.driver.voter_ids = (1,)
    world.start(1)
    world.ask(controller(1))
    place = ReplicaAssignment(partition=0, broker_ids=(1,))
    world.ask(BeginImportRequest(name="t", assignments=(place,), last_epochs=(7,), next_producer_id=5, timeout_ms=1))
    assert world.partition().leader_recovery_state == state
    for kind in (2, 3):
        off = [(name, 0, kind) for name in (GV, JV, TV)]
        response = update(world, (MV, level - 1, kind), *off)
        assert code(response) is ErrorCode.INVALID_UPDATE_VERSION
        assert "cannot express topic t, which takes an import: finish that" in response.error_message
    assert world.tip.metadata_version == LATEST_LEVEL
    assert code(downgraded(world, level)) is ErrorCode.NONE
    world.ask(DeleteTopicsRequest(topics=(TopicQuery(name="t"),), timeout_ms=1))
    assert code(downgraded(world, level - 1)) is ErrorCode.NONE


REFUSED = [
    ("above what the software supports", (MV, 99, 1), "the active controller supports metadata.version from level 1"),
    ("below 0", (MV, -1, 2), "a level is a number from 0 to 32767"),
    ("wider than 16 bits", (MV, 40_000, 1), "a level is a number from 0 to 32767"),
    ("a downgrade that is not called one", (MV, 1, 1), "level 2 is in force, so this is a downgrade"),
    ("an upgrade that is called a downgrade", (MV, 3, 2), "level 2 is in force, so this is an upgrade"),
    ("turning metadata.version off", (MV, 0, 2), "it cannot be turned off"),
    ("an unknown feature", ("f", 1, 1), "no feature of that name; it has group.version, joint.version, metadata"),
]


@rule("kraft 12.10")
@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(("wanted", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_an_update_is_refused(wanted: tuple[str, int, int], says: str, validate_only: bool) -> None:
    world = at_level_2(1, 2, 3)
    assert says in refusal(world, update(world, wanted, validate_only=validate_only))


INVALID = [
    ("nothing", (), "name at least one"),
    ("twice", ((MV, 3, 1), (MV, 3, 1)), f"named twice: {MV}"),
    ("no name", (("", 3, 1),), "a feature without a name"),
    ("an unknown kind", ((MV, 3, 4),), "upgrade type 4"),
    ("the kind 0", ((MV, 3, 0),), "upgrade type 0"),
]


@pytest.mark.parametrize(("wanted", "says"), [c[1:] for c in INVALID], ids=[c[0] for c in INVALID])
def test_a_request_is_invalid(wanted: tuple[tuple[str, int, int], ...], says: str) -> None:
    with pytest.raises(ApiError) as raised:
        update(at_level_2(1, 2, 3), *wanted)
    assert raised.value.code is ErrorCode.INVALID_REQUEST and says in raised.value.message


@rule("kraft 12.10")
def test_one_refused_feature_refuses_all() -> None:
    world = at_level_2(1, 2, 3)
    response = update(world, (MV, 3, 1), ("f", 1, 1))
    assert "f cannot be set to level 1" in refusal(world, response)
    assert [ErrorCode(result.error_code) for result in response.results] == [
        ErrorCode.FEATURE_UPDATE_FAILED,
        ErrorCode.INVALID_UPDATE_VERSION,
    ]
    assert world.tip.metadata_version == 2


@rule("kraft 12.10")
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_the_level_in_force_changes_nothing(kind: int) -> None:
    world = at_level_2(1)
    before = len(world.log)
    assert code(update(world, (MV, 2, kind))) is ErrorCode.NONE and len(world.log) == before


@rule("kraft 12.10")
def test_validation_writes_nothing() -> None:
    world = at_level_2(1, 2, 3)
    before = len(world.log)
    assert code(upgrade(world, validate_only=True)) is ErrorCode.NONE
    assert len(world.log) == before and world.tip.metadata_version == 2


@rule("kraft 12.6")
def test_topics_that_were_prepared_at_the_level_before_are_written_at_the_new_one() -> None:
    """A large creation is prepared in slices. The level may change in between."""
    world = World(log=AT_LEVEL_2, max_slice_work=25)
    world.driver.voter_ids = (1,)
    world.start(1)
    world.ask(controller(1))
    topics = tuple(CreatableTopic(name=f"t{index}", num_partitions=3) for index in range(4))
    creation = world.begin(CreateTopicsRequest(topics=topics, timeout_ms=1_000))
    assert not creation.done
    changed = world.begin(UpdateFeaturesRequest(updates=(FeatureUpdate(name=MV, level=3),), timeout_ms=1_000))
    assert changed.done and world.tip.metadata_version == 3
    world.finish()
    assert len(world.tip.topics) == 4 and creation.response is not None


def test_a_broker_that_registers_while_the_level_rises_has_its_ranges_in_the_log() -> None:
    world = World(log=AT_LEVEL_1)
    world.start(1)
    assert code(upgrade(world, 2)) is ErrorCode.NONE
    world.start(2)
    last = [record for record in world.log if isinstance(record, RegisterBrokerRecord)][-1]
    assert last.features == SUPPORTED


# --- features beside metadata.version ---


ON = ((GV, 1, 1), (TV, 2, 1), (JV, 2, 1))


def others(world: World) -> tuple[int, int, int]:
    return world.tip.group_version, world.tip.transaction_version, world.tip.joint_version


@rule("kraft 12.15")
@pytest.mark.parametrize(
    ("first_level", "expected"),
    [(None, (1, 2, 2)), (LATEST_LEVEL, (1, 2, 2)), (OTHERS_LEVEL, (1, 2, 2)), (2, (0, 0, 0))],
)
def test_a_new_cluster_begins_with_the_newest_features_where_its_level_permits_them(
    first_level: int | None, expected: tuple[int, int, int]
) -> None:
    assert others(World(first_level=first_level)) == expected


@rule("kraft 12.15")
def test_an_older_cluster_gets_features_when_it_is_told_to() -> None:
    world = World(log=(FeatureLevelRecord(name=MV, level=LATEST_LEVEL), MIN_ISR))
    world.driver.voter_ids = (1,)
    world.start(1)
    assert "controller 1 has not said" in update(world, *ON).error_message
    world.ask(controller(1))
    before = len(world.log)
    assert code(update(world, *ON, validate_only=True)) is ErrorCode.NONE and len(world.log) == before
    assert code(update(world, *ON)) is ErrorCode.NONE
    assert world.log[before:] == [FeatureLevelRecord(name=name, level=level) for name, level, _ in ON]
    assert others(world) == (1, 2, 2)
    assert code(update(world, (TV, 1, 2), (JV, 0, 2))) is ErrorCode.NONE and others(world) == (1, 1, 0)
    assert code(update(world, (TV, 0, 2), (GV, 0, 2))) is ErrorCode.NONE and others(world) == (0, 0, 0)


def test_joint_version_stands_on_an_epoch_for_each_transaction() -> None:
    world = World()
    world.driver.voter_ids = (1,)
    world.start(1)
    world.ask(controller(1))
    for level in (1, 0):
        said = update(world, (TV, level, 2)).error_message
        assert said.endswith("joint.version 2 would stay on, and needs 2; turn it off first")
    assert code(update(world, (JV, 1, 2))) is ErrorCode.NONE
    assert "joint.version 1 would stay on" in update(world, (TV, 1, 2)).error_message
    assert code(update(world, (TV, 1, 2), (JV, 0, 2))) is ErrorCode.NONE and others(world) == (1, 1, 0)
    assert update(world, (JV, 2, 1)).error_message.endswith("it needs transaction.version 2, and 1 would be in force")
    assert "and 1 would be in force" in update(world, (JV, 1, 1)).error_message
    assert code(update(world, (JV, 2, 1), (TV, 2, 1))) is ErrorCode.NONE and others(world) == (1, 2, 2)


@rule("kraft 12.16")
def test_no_feature_is_on_before_metadata_version_permits_it() -> None:
    world = at_level_2(1, 2, 3)
    for one in ON:
        said = f"{one[0]} cannot be set to level {one[1]}: it needs metadata.version {OTHERS_LEVEL}, and 2 would be"
        assert said in refusal(world, update(world, one))
    before = len(world.log)
    assert code(update(world, *ON, (MV, LATEST_LEVEL, 1))) is ErrorCode.NONE
    levels = [record for record in world.log[before:] if isinstance(record, FeatureLevelRecord)]
    assert [record.name for record in levels] == [MV, GV, TV, JV], "the others come behind metadata.version"
    assert others(world) == (1, 2, 2)


@rule("kraft 12.16")
def test_metadata_version_stays_where_features_are_on() -> None:
    world = World()
    world.driver.voter_ids = (1,)
    world.start(1)
    world.ask(controller(1))
    response = update(world, (MV, 2, 2), (GV, 0, 2))
    assert code(response) is ErrorCode.INVALID_UPDATE_VERSION
    assert "would stay on; turn it off in the same request: joint.version=0, transaction.version=0" in (
        response.error_message
    )
    assert others(world) == (1, 2, 2) and world.tip.metadata_version == LATEST_LEVEL
    before = len(world.log)
    assert code(update(world, (MV, 2, 2), (GV, 0, 2), (TV, 0, 2), (JV, 0, 2))) is ErrorCode.NONE
    levels = [record for record in world.log[before:] if isinstance(record, FeatureLevelRecord)]
    assert [record.name for record in levels] == [GV, TV, JV, MV], "the others are off before metadata.version falls"


@pytest.mark.parametrize("wanted", ON[:2], ids=[GV, TV])
def test_software_from_before_a_feature_holds_it_back_and_is_refused_once_it_is_on(
    wanted: tuple[str, int, int],
) -> None:
    world = World(log=(FeatureLevelRecord(name=MV, level=LATEST_LEVEL), MIN_ISR))
    world.driver.voter_ids = (1,)
    world.start(1)
    world.start(2, features=up_to(LATEST_LEVEL))
    world.ask(controller(1))
    said = f"broker 2 supports no level of {wanted[0]}: start it with newer software first"
    assert said in update(world, wanted).error_message
    world.ask(registration(2))
    assert code(update(world, wanted)) is ErrorCode.NONE
    with pytest.raises(ApiError, match=rf"no level of {wanted[0]}; the cluster uses level {wanted[1]}"):
        world.ask(registration(2, features=up_to(LATEST_LEVEL)))


@pytest.mark.parametrize(("wanted", "says"), [((GV, 2, 1), "group.version from level 0 to 1"), ((TV, 3, 1), "0 to 2")])
def test_a_level_above_the_software_is_refused(wanted: tuple[str, int, int], says: str) -> None:
    response = update(at_level_2(1, 2, 3), wanted)
    assert f"the active controller supports {wanted[0]} from level" in response.error_message
    assert says in response.error_message
