"""Topic settings and names: which are refused, with which messages, and how values are parsed."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.topic_config import MAX_LONG, TOPIC_CONFIGS, TopicConfig, validate, validate_all
from quorumlog.topic_name import collision_key, validate_topic_name

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
    ("cleanup.policy", "", "compact, delete"),
    ("durability", "maybe", "synced, replicated"),
    ("message.timestamp.type", "createtime", "CreateTime, LogAppendTime"),
]


@pytest.mark.parametrize(("name", "value", "says"), REFUSED)
def test_a_bad_setting_is_refused(name: str, value: str, says: str) -> None:
    with pytest.raises(ApiError, match=says) as raised:
        validate(name, value)
    assert raised.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("key", TOPIC_CONFIGS.values(), ids=lambda key: key.name)
def test_every_default_is_legal_and_every_key_is_explained(key: object) -> None:
    config = TOPIC_CONFIGS[key.name]  # type: ignore[attr-defined]
    validate(config.name, config.default)
    assert config.doc.endswith(".")


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


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a\x00", "__cluster_metadata"])
def test_illegal_names(name: str) -> None:
    with pytest.raises(ApiError) as raised:
        validate_topic_name(name)
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


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
