"""Topic settings and names: which are refused, with which messages, and how values are parsed."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.configs.topic import TOPIC_CONFIGS, TopicConfig, validate, validate_all, validate_words
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.config_key import MAX_LONG
from quorumlog.topic_name import collision_key, validate_topic_name
from tests.rules import rule

REFUSED = [
    ("retention.mss", "1", "did you mean retention.ms"),
    ("no such thing at all", "1", "unknown topic config"),
    ("retention.ms", "soon", "must be a whole number"),
    ("retention.ms", "1_000", "must be a whole number"),
    ("retention.ms", "", "must be a whole number"),
    ("retention.ms", "٣", "must be a whole number"),
    ("retention.ms", "1.5", "must be a whole number"),
    ("retention.ms", "-2", "between -1 and"),
    ("retention.ms", str(2**63), "between -1 and"),
    ("retention.ms", "9" * 5000, "5000 characters"),
    ("segment.bytes", "1000", "between 1048576 and"),
    ("min.insync.replicas", "0", "between 1 and"),
    ("min.cleanable.dirty.ratio", "1.1", "between 0 and 1"),
    ("min.cleanable.dirty.ratio", "nan", "must be a decimal number"),
    ("preallocate", "yes", "must be true or false"),
    ("cleanup.policy", "shred", "compact, delete"),
    ("cleanup.policy", ",", "compact, delete"),
    ("cleanup.policy", "none", "compact, delete"),
    ("remote.storage.enable", "true", "there is no tiered storage"),
    ("local.retention.ms", "-3", "between -2 and"),
    ("durability", "maybe", "synced, replicated"),
    ("message.timestamp.type", "createtime", "CreateTime, LogAppendTime"),
]


@rule("storage 1.27")
@pytest.mark.parametrize(("name", "value", "says"), REFUSED)
def test_a_bad_setting_is_refused(name: str, value: str, says: str) -> None:
    with pytest.raises(ApiError, match=says) as raised:
        validate(name, value)
    assert raised.value.code is ErrorCode.INVALID_CONFIG


KAFKAS = {
    "cleanup.policy": "delete", "compression.gzip.level": "-1", "compression.lz4.level": "9",
    "compression.type": "producer", "compression.zstd.level": "3", "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000", "flush.messages": str(MAX_LONG), "flush.ms": str(MAX_LONG),
    "follower.replication.throttled.replicas": "", "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "", "local.retention.bytes": "-2", "local.retention.ms": "-2",
    "max.compaction.lag.ms": str(MAX_LONG), "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000", "message.timestamp.before.max.ms": str(MAX_LONG),
    "message.timestamp.type": "CreateTime", "min.cleanable.dirty.ratio": "0.5", "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1", "preallocate": "false", "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false", "remote.storage.enable": "false", "retention.bytes": "-1",
    "retention.ms": "604800000", "segment.bytes": "1073741824", "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0", "segment.ms": "604800000", "unclean.leader.election.enable": "false",
}  # fmt: skip
"""Every setting of a topic of Kafka 4.3.1 (`LogConfig.configNames`) with its default; `internal.segment.bytes` has
none."""


def test_every_setting_of_kafka_is_known_with_its_default() -> None:
    """What copies topics from Kafka sends all of them, and one that is refused refuses the topic."""
    assert {name: TOPIC_CONFIGS[name].default for name in KAFKAS} == KAFKAS
    validate_all(KAFKAS)
    assert TopicConfig.from_map(KAFKAS) == TopicConfig.from_map({})


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", ()),
        (" ", ()),
        ("compact,compact", ("compact",)),
        (" compact , delete ", ("compact", "delete")),
    ],
)
def test_cleanup_policies_that_kafka_takes(text: str, policy: tuple[str, ...]) -> None:
    validate("cleanup.policy", text)
    assert TopicConfig.from_map({"cleanup.policy": text}).cleanup_policy == policy


@pytest.mark.parametrize("text", ["compact,,delete", "compact,", ",delete", " , compact", "delete, "])
def test_a_policy_without_a_word_beside_a_comma_is_refused_as_kafka_does_but_still_read(text: str) -> None:
    """Older software has stored such values."""
    validate_all({"cleanup.policy": text})
    assert TopicConfig.from_map({"cleanup.policy": text}).cleanup_policy
    with pytest.raises(ApiError, match="a word is missing beside a comma"):
        validate_words({"cleanup.policy": text})


@pytest.mark.parametrize("text", ["", " ", "compact", "compact, delete", "delete,delete,compact"])
def test_other_policies_are_allowed(text: str) -> None:
    validate_words({"cleanup.policy": text})


@pytest.mark.parametrize("name", ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"])
def test_throttled_replicas_are_all_of_them_or_those_that_are_named(name: str) -> None:
    for text in ("*", " * ", "0:1,1:2", "0:1,,1:2", "0:1,", ""):
        validate_words({name: text})
    for text in ("*,0:1", "0:1,*", "*,*"):
        with pytest.raises(ApiError, match="write it alone"):
            validate_words({name: text})


@pytest.mark.parametrize("name", ["local.retention.ms", "local.retention.bytes"])
def test_what_concerns_tiered_storage_alone_has_no_effect(name: str) -> None:
    validate(name, "1000")
    assert TopicConfig.from_map({name: "1000", "remote.log.copy.disable": "true"}) == TopicConfig.from_map({})


@pytest.mark.parametrize("key", TOPIC_CONFIGS.values(), ids=lambda key: key.name)
def test_every_default_is_legal_and_every_key_is_explained(key: object) -> None:
    config = TOPIC_CONFIGS[key.name]  # type: ignore[attr-defined]
    validate(config.name, config.default)
    assert config.doc.endswith(".")


@rule("storage 1.27")
def test_parsed_defaults_are_kafkas() -> None:
    config = TopicConfig.from_map({})
    assert (config.segment_bytes, config.retention_ms, config.retention_bytes) == (1 << 30, 604_800_000, -1)
    assert (config.flush_messages, config.max_message_bytes, config.min_insync_replicas) == (MAX_LONG, 1_048_588, 1)
    assert config.cleanup_policy == ("delete",)
    assert config.synced and not config.unclean_leader_election_enable and not config.preallocate


def test_the_topic_wins_over_the_broker_over_kafka() -> None:
    config = TopicConfig.from_map(
        {"retention.ms": "5", "cleanup.policy": "delete, compact", "of.a.newer.version": "x"},
        {"retention.ms": "6", "segment.ms": "7"},
    )
    assert (config.retention_ms, config.segment_ms) == (5, 7)
    assert config.cleanup_policy == ("compact", "delete")
    assert TopicConfig.from_map({"internal.segment.bytes": "100"}).segment_bytes == 100


def test_settings_are_checked_against_each_other() -> None:
    with pytest.raises(ApiError, match=r"above max\.compaction\.lag\.ms"):
        validate_all({"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"})


@given(st.sampled_from(sorted(TOPIC_CONFIGS)), st.text(max_size=20))
def test_any_text_is_legal_or_an_invalid_config(name: str, value: str) -> None:
    try:
        validate(name, value)
    except ApiError as error:
        assert error.code is ErrorCode.INVALID_CONFIG
    else:
        TopicConfig.from_map({name: value})


@rule("storage 7.13")
@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    validate_topic_name(name)


@rule("storage 7.13")
@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a\x00", "__cluster_metadata"])
def test_illegal_names(name: str) -> None:
    with pytest.raises(ApiError) as raised:
        validate_topic_name(name)
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@rule("storage 7.13")
def test_dots_and_underscores_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c") != collision_key("a-b_c")


LEGAL = {
    "cleanup.policy": "compact",
    "durability": "replicated",
    "compression.type": "zstd",
    "compression.gzip.level": "9",
    "compression.lz4.level": "12",
    "compression.zstd.level": "19",
    "min.cleanable.dirty.ratio": "0.9",
    "preallocate": "TRUE",
}


OWN = sorted({*TOPIC_CONFIGS} - {"retention.paused"})  # that one lifts the limits of retention, too


@pytest.mark.parametrize("name", [name for name in OWN if hasattr(TopicConfig, name.replace(".", "_"))])
def test_a_setting_changes_its_own_field_alone(name: str) -> None:
    key, default = TOPIC_CONFIGS[name], TopicConfig.from_map({})
    value = LEGAL.get(name) or next((word for word in key.choices if word != key.default), "3000000")
    value = "true" if name == "unclean.leader.election.enable" else value
    config = TopicConfig.from_map({name: value})
    changed = [
        field.name for field in fields(TopicConfig) if getattr(config, field.name) != getattr(default, field.name)
    ]
    assert changed == [name.replace(".", "_")]
    assert TopicConfig.from_map({}, {name: value}) == config
    assert type(getattr(config, changed[0])) is type(getattr(default, changed[0]))


def test_a_setting_that_is_in_force_and_cannot_be_parsed_is_an_error() -> None:
    with pytest.raises(ApiError, match="must be a whole number"):
        TopicConfig.from_map({"retention.ms": "soon"})
