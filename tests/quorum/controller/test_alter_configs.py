"""IncrementalAlterConfigs at the controller: operations, refusals, and what settings mean for partitions."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import World, cluster, code
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog_quorum.controller.requests.alter_configs import APPEND, DELETE, SET, SUBTRACT, changed_values
from tests.parts import few
from tests.rules import rule

TOPIC, BROKER, GROUP = 2, 4, 32
Change = tuple[str, int, str | None]


def alter(world: World, *changes: Change, kind: int = TOPIC, name: str = "t", **fields: Any) -> Any:
    configs = tuple(AlterableConfig(name=key, operation=operation, value=value) for key, operation, value in changes)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return world.ask(IncrementalAlterConfigsRequest(resources=(resource,), **fields)).results[0]


def topic_world(**config: Any) -> World:
    world = cluster(1, 2, 3, **config)
    world.create(replicas=(1, 2, 3), configs={"retention.ms": "5"})
    return world


REFUSALS: list[tuple[str, int, str, list[Change], ErrorCode]] = [
    ("no such topic", TOPIC, "nobody", [("retention.ms", SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("no such topic, and a bad value", TOPIC, "nobody", [("retention.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
    ("twice, and bad", TOPIC, "t", [("retention.ms", SET, "x"), ("retention.ms", SET, "x")], ErrorCode.INVALID_REQUEST),
    ("a topic without a name", TOPIC, "", [("retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
    ("an illegal name, and a value", TOPIC, "a b", [("retention.ms", SET, "x")], ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("an illegal name, and no list", TOPIC, "a b", [("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
    ("a name that no topic can have", TOPIC, "a b", [("retention.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("no such type", 3, "t", [("retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
    ("no broker id", BROKER, "one", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
    ("zeros before a broker id", BROKER, "01", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
    ("no such broker", BROKER, "9", [("log.retention.ms", SET, "1")], ErrorCode.BROKER_ID_NOT_REGISTERED),
    ("unknown key", TOPIC, "t", [("retention.mss", SET, "1")], ErrorCode.INVALID_CONFIG),
    ("unknown key deleted", TOPIC, "t", [("retention.mss", DELETE, None)], ErrorCode.INVALID_CONFIG),
    ("unknown key of a broker", BROKER, "", [("log.retention.hours", SET, "1")], ErrorCode.INVALID_CONFIG),
    ("read-only key of a broker", BROKER, "", [("listeners", SET, "x")], ErrorCode.INVALID_CONFIG),
    ("a key of brokers", TOPIC, "t", [("log.cleaner.threads", SET, "2")], ErrorCode.INVALID_CONFIG),
    ("bad value of a broker", BROKER, "", [("log.cleaner.threads", SET, "two")], ErrorCode.INVALID_CONFIG),
    ("too low for a broker", BROKER, "1", [("log.cleaner.dedupe.buffer.size", SET, "9")], ErrorCode.INVALID_CONFIG),
    ("append to a broker's number", BROKER, "", [("log.cleaner.threads", APPEND, "2")], ErrorCode.INVALID_CONFIG),
    ("directories of all brokers", BROKER, "", [("cordoned.log.dirs", SET, "/d0")], ErrorCode.INVALID_CONFIG),
    ("a list of all brokers", BROKER, "", [("cordoned.log.dirs", APPEND, "/d0")], ErrorCode.INVALID_CONFIG),
    ("marks of rolls of one broker", BROKER, "1", [("rolls.under.way", APPEND, "me")], ErrorCode.INVALID_CONFIG),
    ("a mark of a roll that is none", BROKER, "", [("rolls.under.way", APPEND, "a b")], ErrorCode.INVALID_CONFIG),
    ("bad value", TOPIC, "t", [("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
    (
        "no value, behind another mistake",
        TOPIC,
        "nobody",
        [("retention.ms", SUBTRACT, "1"), ("segment.ms", SET, None)],
        ErrorCode.INVALID_REQUEST,
    ),
    ("a file (CVE-2024-31141)", TOPIC, "t", [("retention.ms", SET, "${file:/f:k}")], ErrorCode.INVALID_CONFIG),
    ("an empty policy", TOPIC, "t", [("cleanup.policy", SET, "compact,,delete")], ErrorCode.INVALID_CONFIG),
    ("an empty policy of brokers", BROKER, "", [("log.cleanup.policy", SET, "delete,")], ErrorCode.INVALID_CONFIG),
    (
        "all replicas and one more",
        TOPIC,
        "t",
        [
            ("leader.replication.throttled.replicas", SET, "*"),
            ("follower.replication.throttled.replicas", SET, "*,0:1"),
        ],
        ErrorCode.INVALID_CONFIG,
    ),
    ("no value", TOPIC, "t", [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
    ("nothing to append", TOPIC, "t", [("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST),
    ("append to a number", TOPIC, "t", [("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
    ("unknown operation", TOPIC, "t", [("retention.ms", 4, "1")], ErrorCode.INVALID_REQUEST),
    (
        "a key twice",
        TOPIC,
        "t",
        [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
        ErrorCode.INVALID_REQUEST,
    ),
    (
        "a key by both names",
        BROKER,
        "",
        [("log.retention.ms", SET, "1"), ("retention.ms", SET, "2")],
        ErrorCode.INVALID_REQUEST,
    ),
    (
        "values that contradict each other",
        TOPIC,
        "t",
        [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5")],
        ErrorCode.INVALID_CONFIG,
    ),
    ("one broker's min ISR", BROKER, "1", [("min.insync.replicas", SET, "2")], ErrorCode.INVALID_CONFIG),
    ("all groups", GROUP, "", [("consumer.session.timeout.ms", SET, "50000")], ErrorCode.INVALID_REQUEST),
    ("unknown key of a group", GROUP, "g", [("session.timeout.ms", SET, "50000")], ErrorCode.INVALID_CONFIG),
    ("bad value of a group", GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "0")], ErrorCode.INVALID_CONFIG),
    (
        "a silence that no member keeps",
        GROUP,
        "g",
        [("consumer.session.timeout.ms", SET, "5000"), ("consumer.heartbeat.interval.ms", SET, "5000")],
        ErrorCode.INVALID_CONFIG,
    ),
    ("no min ISR at all", BROKER, "", [("min.insync.replicas", DELETE, None)], ErrorCode.INVALID_CONFIG),
]


@pytest.mark.parametrize(("kind", "name", "changes", "want"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_refused(kind: int, name: str, changes: list[Change], want: ErrorCode) -> None:
    world = topic_world()
    before = world.tip
    assert code(alter(world, *changes, kind=kind, name=name)) is want
    assert world.tip is before


def test_the_rate_of_moves_can_be_set_and_taken_back_whether_it_was_set_or_not() -> None:
    """kafka-reassign-partitions takes it back at its end, and sets it with --replica-alter-log-dirs-throttle."""
    world, key = topic_world(), "replica.alter.log.dirs.io.max.bytes.per.second"
    before = world.tip
    assert code(alter(world, (key, DELETE, None), kind=BROKER, name="1")) is ErrorCode.NONE
    assert world.tip is before
    assert code(alter(world, (key, SET, "0"), kind=BROKER, name="1")) is ErrorCode.INVALID_CONFIG
    assert code(alter(world, (key, SET, "1000"), kind=BROKER, name="1")) is ErrorCode.NONE
    assert dict(world.tip.configs[BROKER, "1"]) == {key: "1000"}


@pytest.mark.parametrize(
    ("kind", "key", "nearest"),
    [(TOPIC, "retention.mss", "retention.ms"), (BROKER, "log.retention.mss", "log.retention.ms")],
    ids=["topic", "broker"],
)
def test_the_error_of_an_unknown_key_names_the_most_similar_one(kind: int, key: str, nearest: str) -> None:
    result = alter(topic_world(), (key, SET, "1"), kind=kind, name="t" if kind == TOPIC else "")
    assert f"did you mean {nearest}?" in result.error_message


def test_a_list_of_one_broker_grows_and_shrinks() -> None:
    world = topic_world()
    for operation, value, left in [(SET, "/a, /b", "/a, /b"), (APPEND, "/c", "/a,/b,/c"), (SUBTRACT, "/b", "/a,/c")]:
        assert code(alter(world, ("cordoned.log.dirs", operation, value), kind=BROKER, name="1")) is ErrorCode.NONE
        assert world.tip.configs[BROKER, "1"]["cordoned.log.dirs"] == left


def test_marks_of_rolls_stay_in_the_order_of_their_first_append() -> None:
    """A request may come twice."""
    world = topic_world()
    for operation, mark, left in [
        (APPEND, "a", "a"), (APPEND, "b", "a,b"), (APPEND, "a", "a,b"), (SUBTRACT, "a", "b"), (SUBTRACT, "b", "")
    ]:  # fmt: skip
        assert code(alter(world, ("rolls.under.way", operation, mark), kind=BROKER, name="")) is ErrorCode.NONE
        assert world.tip.configs[BROKER, ""]["rolls.under.way"] == left


def test_nothing_is_added_to_the_word_for_all_replicas() -> None:
    world, key = topic_world(), "leader.replication.throttled.replicas"
    assert code(alter(world, (key, SET, "*"))) is ErrorCode.NONE
    assert code(alter(world, (key, APPEND, "0:1"))) is ErrorCode.INVALID_CONFIG
    assert world.tip.configs[TOPIC, "t"][key] == "*"


def test_set_and_delete_change_only_what_they_name() -> None:
    world = topic_world()
    assert code(alter(world, ("segment.bytes", SET, "2097152"))) is ErrorCode.NONE
    assert dict(world.tip.configs[TOPIC, "t"]) == {"retention.ms": "5", "segment.bytes": "2097152"}
    assert code(alter(world, ("retention.ms", DELETE, None), ("flush.ms", DELETE, None))) is ErrorCode.NONE
    assert dict(world.tip.configs[TOPIC, "t"]) == {"segment.bytes": "2097152"}


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    world = topic_world()
    before = len(world.log)
    assert code(alter(world, ("retention.ms", SET, "5"))) is ErrorCode.NONE
    assert len(world.log) == before


def test_lists_grow_from_what_is_inherited() -> None:
    world = topic_world()
    alter(world, ("cleanup.policy", APPEND, "compact"))
    assert world.tip.topic_config("t")["cleanup.policy"] == "delete,compact"
    alter(world, ("cleanup.policy", SUBTRACT, "delete"))
    assert world.tip.topic_config("t")["cleanup.policy"] == "compact"


def test_the_last_policy_can_be_taken_away() -> None:
    """As in Kafka: a topic without a policy keeps everything."""
    world = topic_world()
    assert code(alter(world, ("cleanup.policy", SUBTRACT, "delete"))) is ErrorCode.NONE
    assert world.tip.topic_config("t")["cleanup.policy"] == ""


def test_a_change_sees_those_before_it_in_the_same_request() -> None:
    world = topic_world()
    of_all = AlterableConfig(name="log.cleanup.policy", operation=SET, value="compact")
    of_topic = AlterableConfig(name="cleanup.policy", operation=APPEND, value="delete")
    resources = (
        AlterConfigsResource(resource_type=BROKER, resource_name="", configs=(of_all,)),
        AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=(of_topic,)),
    )
    results = world.ask(IncrementalAlterConfigsRequest(resources=resources)).results
    assert [result.error_code for result in results] == [0, 0]
    assert world.tip.topic_config("t")["cleanup.policy"] == "compact,delete"


def test_settings_of_brokers_are_kept_by_the_topics_names() -> None:
    world = topic_world()
    assert code(alter(world, ("log.retention.ms", SET, "7"), kind=BROKER, name="")) is ErrorCode.NONE
    assert code(alter(world, ("log.flush.interval.ms", SET, "8"), kind=BROKER, name="2")) is ErrorCode.NONE
    assert world.tip.configs[BROKER, ""]["retention.ms"] == "7"
    assert dict(world.tip.configs[BROKER, "2"]) == {"flush.ms": "8"}
    assert world.tip.topic_config("t")["retention.ms"] == "5"


@rule("kraft 7.11")
def test_validate_only_changes_nothing_and_answers_the_same() -> None:
    world = topic_world()
    before = world.tip
    assert code(alter(world, ("retention.ms", SET, "9"), validate_only=True)) is ErrorCode.NONE
    assert code(alter(world, ("retention.ms", SET, "x"), validate_only=True)) is ErrorCode.INVALID_CONFIG
    assert world.tip is before


def test_one_resource_twice_is_refused_both_times() -> None:
    world = topic_world()
    one = AlterConfigsResource(resource_type=TOPIC, resource_name="t")
    results = world.ask(IncrementalAlterConfigsRequest(resources=(one, one))).results
    assert [code(result) for result in results] == [ErrorCode.INVALID_REQUEST] * 2


@rule("kraft 9.10")
@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "")], ids=["topic", "all brokers"])
def test_a_smaller_min_isr_ends_an_elr(kind: int, name: str) -> None:
    world = cluster(1, 2, 3, min_insync_replicas=2)
    world.create(replicas=(1, 2, 3))
    world.fence(2)
    world.fence(3)
    assert (world.partition().isr, world.partition().eligible_leader_replicas) == ((1,), (3,))
    assert code(alter(world, ("min.insync.replicas", SET, "1"), kind=kind, name=name)) is ErrorCode.NONE
    assert world.partition().eligible_leader_replicas == ()


@rule("kraft 9.11")
def test_allowing_unclean_elections_elects_at_once() -> None:
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2))
    world.fence(2)
    world.fence(1)
    world.start(2, incarnation=1)
    assert world.partition().leader == -1
    assert code(alter(world, ("unclean.leader.election.enable", SET, "true"))) is ErrorCode.NONE
    assert (world.partition().leader, world.partition().isr) == (2, (2,))


NAMES = st.sampled_from(["retention.ms", "flush.ms", "segment.ms", "cleanup.policy"])
WORDS = st.lists(st.sampled_from(["compact", "delete"]), min_size=1, max_size=3).map(",".join)


@settings(max_examples=few(150))
@given(st.dictionaries(NAMES, st.tuples(st.sampled_from([SET, DELETE, APPEND, SUBTRACT]), WORDS)))
def test_operations_agree_with_a_dumber_model(changes: dict[str, tuple[int, str]]) -> None:
    before = {"retention.ms": "5", "cleanup.policy": "compact"}
    asked = [AlterableConfig(name=name, operation=op, value=words) for name, (op, words) in changes.items()]
    try:
        after = changed_values(before, {}, asked, lambda name: name)
    except ApiError:
        assert any(name != "cleanup.policy" and op != DELETE for name, (op, _) in changes.items())
        return
    for name in {*before, *after}:
        if name not in changes:
            assert after[name] == before[name]
    operation, words = changes.get("cleanup.policy", (APPEND, ""))
    held = {"compact"}
    want = {
        SET: set(words.split(",")),
        DELETE: None,
        APPEND: held | {word for word in words.split(",") if word},
        SUBTRACT: held - set(words.split(",")),
    }[operation]
    got = after.get("cleanup.policy")
    assert (None if got is None else {word for word in got.split(",") if word}) == want


def test_what_a_replacing_request_does_not_name_is_taken_back() -> None:
    world = topic_world()
    configs = (AlterableConfig(name="segment.ms", value="7"),)
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs, replace=True)
    checked = world.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)).results[0]
    assert checked.error_code == 0 and dict(world.tip.configs[TOPIC, "t"]) == {"retention.ms": "5"}
    assert world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results[0].error_code == 0
    assert dict(world.tip.configs[TOPIC, "t"]) == {"segment.ms": "7"}


def test_a_replacing_request_takes_back_no_min_isr_of_all_brokers() -> None:
    world = topic_world()
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", replace=True)
    before = world.tip.configs.get((BROKER, ""), {})
    result = world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results[0]
    assert world.tip.configs.get((BROKER, ""), {}) == before
    assert (result.error_code == ErrorCode.INVALID_CONFIG) is ("min.insync.replicas" in before)


def test_settings_of_the_cleaner_are_of_brokers_and_no_default_of_topics() -> None:
    world = topic_world()
    assert code(alter(world, ("log.cleaner.threads", SET, "2"), kind=BROKER, name="")) == 0
    assert code(alter(world, ("log.cleaner.io.max.bytes.per.second", SET, "1.5E6"), kind=BROKER, name="1")) == 0
    configs = world.tip.configs
    assert configs[BROKER, ""]["log.cleaner.threads"] == "2"
    assert configs[BROKER, "1"]["log.cleaner.io.max.bytes.per.second"] == "1.5E6"
    assert code(alter(world, ("log.cleaner.threads", DELETE, None), kind=BROKER, name="")) == 0
    assert "log.cleaner.threads" not in world.tip.configs.get((BROKER, ""), {})


def test_a_group_has_settings_before_it_exists() -> None:
    world = topic_world()
    assert code(alter(world, ("consumer.session.timeout.ms", SET, "50000"), kind=GROUP, name="g")) == ErrorCode.NONE
    assert dict(world.tip.configs[GROUP, "g"]) == {"consumer.session.timeout.ms": "50000"}
    assert code(alter(world, ("consumer.session.timeout.ms", DELETE, None), kind=GROUP, name="g")) == ErrorCode.NONE
    assert (GROUP, "g") not in world.tip.configs
