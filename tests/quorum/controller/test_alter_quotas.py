"""AlterClientQuotas at the controller: every refusal, what is written, and that nothing stays behind."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from controller_world import World, cluster, code
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.messages.quotas import AlterClientQuotasRequest, QuotaAlteration, QuotaOp
from quorumlog_quorum.controller.engine.limits import MAX_QUOTAS_PER_REQUEST
from quorumlog_quorum.metadata.quotas import all_quotas

Entity = dict[str, str | None]
USER: Entity = {"user": "ada"}
IN, OUT = "producer_byte_rate", "consumer_byte_rate"


def alteration(entity: Entity | list[tuple[str, str | None]], *ops: QuotaOp) -> QuotaAlteration:
    parts = entity.items() if isinstance(entity, dict) else entity
    return QuotaAlteration(
        entity=tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in parts), ops=ops
    )


def put(value: float, key: str = IN) -> QuotaOp:
    return QuotaOp(key=key, value=value)


def drop(key: str = IN) -> QuotaOp:
    return QuotaOp(key=key, remove=True)


def alter(world: World, *entries: QuotaAlteration, validate_only: bool = False) -> list[ErrorCode]:
    answer = world.ask(AlterClientQuotasRequest(entries=entries, validate_only=validate_only))
    assert [one.entity for one in answer.entries] == [one.entity for one in entries]
    return [code(one) for one in answer.entries]


CREATIONS = "connection_creation_rate"
REFUSALS: list[tuple[str, QuotaAlteration]] = [
    ("no entity", alteration({}, put(1))),
    ("unknown type", alteration({"group": "g"}, put(1))),
    ("empty name", alteration({"user": ""}, put(1))),
    ("long name", alteration({"client-id": "c" * 1025}, put(1))),
    ("a type twice", alteration([("user", "a"), ("user", "b")], put(1))),
    ("ip and user", alteration({"ip": "10.0.0.1", "user": "a"}, put(1, CREATIONS))),
    ("ip and client id", alteration({"ip": None, "client-id": None}, put(1, CREATIONS))),
    ("name of a host", alteration({"ip": "localhost"}, put(1, CREATIONS))),
    ("another text of an address", alteration({"ip": "0:0:0:0:0:0:0:1"}, put(1, CREATIONS))),
    ("key of an ip", alteration(USER, put(1, CREATIONS))),
    ("key of a user", alteration({"ip": "10.0.0.1"}, put(1))),
    ("unknown key", alteration(USER, put(1, "speed"))),
    ("a key twice", alteration(USER, put(1), put(2))),
    ("a key set and removed", alteration(USER, put(1), drop())),
    ("zero", alteration(USER, put(0))),
    ("below zero", alteration(USER, put(-1, "request_percentage"))),
    ("fraction of a byte", alteration(USER, put(1.5))),
    ("not a number", alteration(USER, put(nan, "request_percentage"))),
    ("infinity", alteration(USER, put(inf))),
    ("more than a long", alteration(USER, put(1e19))),
    ("more than an int", alteration({"ip": None}, put(2**31, CREATIONS))),
    ("one of two", alteration(USER, put(7, OUT), put(-1))),
]


@pytest.mark.parametrize("asked", [c[1] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_refused(asked: QuotaAlteration) -> None:
    world = cluster(1)
    before = world.tip
    assert alter(world, asked) == [ErrorCode.INVALID_REQUEST]
    assert world.tip is before


TAKEN: list[tuple[Entity, str, float]] = [
    ({"user": "ada"}, IN, 1),
    ({"user": None}, OUT, float(2**63 - 1)),
    ({"client-id": "c"}, "request_percentage", 0.5),
    ({"client-id": None}, "controller_mutation_rate", 12.5),
    ({"user": "ada", "client-id": "c"}, IN, 3),
    ({"client-id": None, "user": "ops,eu=1"}, IN, 4),
    ({"ip": "10.0.0.1"}, CREATIONS, 5),
    ({"ip": "::1"}, CREATIONS, 5),
    ({"ip": None}, CREATIONS, 2**31 - 1),
    ({"client-id": "<default>"}, IN, 6),
]


def test_taken() -> None:
    world = cluster(1)
    assert alter(world, *(alteration(entity, put(value, key)) for entity, key, value in TAKEN)) == [0] * len(TAKEN)
    assert all_quotas(world.tip.access) == {tuple(sorted(entity.items())): {key: value} for entity, key, value in TAKEN}


def test_an_entity_that_is_named_twice_is_left_alone() -> None:
    world = cluster(1)
    one = {"user": "a", "client-id": "b"}
    other = {"client-id": "b", "user": "a"}  # the same
    assert alter(world, alteration(one, put(1)), alteration(USER, put(2)), alteration(other, put(3))) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    assert all_quotas(world.tip.access) == {(("user", "ada"),): {IN: 2}}


def test_what_is_there_already_writes_no_record() -> None:
    world = cluster(1)
    assert alter(world, alteration(USER, put(5))) == [ErrorCode.NONE]
    before = world.tip
    assert alter(world, alteration(USER, put(5), drop(OUT))) == [ErrorCode.NONE]
    assert world.tip is before


def test_validate_only_changes_nothing() -> None:
    world = cluster(1)
    before = world.tip
    good, bad = alteration(USER, put(5)), alteration(USER, put(-5))
    assert alter(world, good, validate_only=True) == [ErrorCode.NONE]
    assert alter(world, bad, validate_only=True) == [ErrorCode.INVALID_REQUEST]
    assert world.tip is before


def test_too_many_changes_are_refused_as_a_whole() -> None:
    world = cluster(1)
    entries = [alteration({"user": f"u{number}"}, put(1)) for number in range(MAX_QUOTAS_PER_REQUEST + 1)]
    with pytest.raises(ApiError, match="send several requests") as caught:
        alter(world, *entries)
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    assert set(alter(world, *entries[1:])) == {ErrorCode.NONE}


def test_an_older_metadata_version_has_no_quotas() -> None:
    world = World(log=(FeatureLevelRecord(name="metadata.version", level=4),))
    assert alter(world, alteration(USER, put(5))) == [ErrorCode.UNSUPPORTED_VERSION]


NAMES = st.sampled_from([None, "<default>", "a"])
ENTITIES = st.one_of(
    st.fixed_dictionaries({"user": NAMES}),
    st.fixed_dictionaries({"client-id": NAMES}),
    st.fixed_dictionaries({"user": NAMES, "client-id": NAMES}),
)
CHANGES = st.lists(st.tuples(ENTITIES, st.sampled_from([IN, OUT]), st.sampled_from([None, 1.0, 2.0])), max_size=25)


@settings(max_examples=40)
@given(CHANGES)
def test_after_any_changes_the_image_is_as_if_only_the_last_ones_had_been(changes: list[Any]) -> None:
    """Situation S6: after the removal of a default the state is as if it had never been."""
    world, fresh = cluster(1), cluster(1)
    wanted: dict[Any, dict[str, float]] = {}
    for entity, key, value in changes:
        assert alter(world, alteration(entity, drop(key) if value is None else put(value, key))) == [ErrorCode.NONE]
        values = wanted.setdefault(tuple(sorted(entity.items(), key=lambda part: part[0])), {})
        values.pop(key, None)
        if value is not None:
            values[key] = value
    for kept, values in wanted.items():
        alter(fresh, alteration(list(kept), *(put(value, key) for key, value in values.items())))
    assert all_quotas(world.tip.access) == {kept: values for kept, values in wanted.items() if values}
    assert world.tip.access == fresh.tip.access and world.tip.state_hash == fresh.tip.state_hash


def test_to_remove_what_is_no_key_changes_nothing() -> None:
    """Kafka looks at a key only where it is set."""
    world = cluster(1)
    before = world.tip
    assert alter(world, alteration(USER, drop("speed"))) == [ErrorCode.NONE]
    assert world.tip is before
