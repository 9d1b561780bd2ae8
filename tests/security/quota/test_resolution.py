"""Which quota counts, and who shares it: a table, and any history beside a second answer and a fresh index."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.security.quota.entity import Entity
from quorumlog.security.quota.resolution import Limit, QuotaIndex, index_of
from tests.rules import rule

KEY = "producer_byte_rate"


def of(user: Any = ..., client: Any = ...) -> Entity:
    """... : the entity does not have the type."""
    parts = {"client-id": client, "user": user}
    return tuple((kind, name) for kind, name in parts.items() if name is not ...)


LEVELS: list[tuple[Entity, tuple[str | None, str | None]]] = [  # the first one wins; its bucket for u and c
    (of("u", "c"), ("u", "c")),
    (of("u", None), ("u", "c")),
    (of("u"), ("u", None)),
    (of(None, "c"), ("u", "c")),
    (of(None, None), ("u", "c")),
    (of(None), ("u", None)),
    (of(client="c"), (None, "c")),
    (of(client=None), (None, "c")),
]


@pytest.mark.parametrize("level", range(8))
@rule("security 1.21")
def test_the_most_specific_level_wins_and_names_the_bucket(level: int) -> None:
    """With all less specific ones there, too; and none of the others counts for another user and client."""
    index = index_of((entity, KEY, float(number)) for number, (entity, _) in enumerate(LEVELS) if number >= level)
    assert index.limit(KEY, "u", "c") == Limit(level, LEVELS[level][1])
    assert index.limit("consumer_byte_rate", "u", "c") is None


def test_a_client_without_an_id_falls_under_the_defaults() -> None:
    """Situation S6: null is read as the empty id, and no quota can have that name."""
    index = index_of([(of(client=None), KEY, 5.0), (of(client="<default>"), KEY, 7.0)])
    assert index.limit(KEY, "u", "") == Limit(5.0, (None, ""))
    assert index.limit(KEY, "u", "<default>") == Limit(7.0, (None, "<default>"))
    index.put(of(client=None), KEY, None)
    assert index.limit(KEY, "u", "") is None


def test_without_the_default_a_users_quota_still_holds() -> None:
    index = index_of([(of(client=None), KEY, 5.0), (of("u"), KEY, 7.0)])
    index.put(of(client=None), KEY, None)
    assert index.limit(KEY, "u", "") == Limit(7.0, ("u", None)) and index.limit(KEY, "v", "") is None


def test_addresses_have_their_own() -> None:
    rate = "connection_creation_rate"
    index = index_of([((("ip", None),), rate, 5.0), ((("ip", "10.0.0.1"),), rate, 7.0)])
    assert (index.address_limit(rate, "10.0.0.1"), index.address_limit(rate, "::1")) == (7.0, 5.0)
    index.put((("ip", None),), rate, None)
    assert index.address_limit(rate, "::1") is None and index.limit(rate, "u", "c") is None


def oracle(quotas: dict[Any, float], user: str, client: str) -> Limit | None:
    """Sorts all entities that fit: those with a user first, a named one before the default, then the client so."""

    def rank(entity: Entity) -> tuple[int, ...]:
        parts = dict(entity)
        by_kind = {False: 2, True: 1}  # a default comes behind a name
        return tuple(3 if kind not in parts else by_kind[parts[kind] is not None] for kind in ("user", "client-id"))

    fits = [
        entity
        for entity in quotas
        if all(name in (None, {"user": user, "client-id": client}[kind]) for kind, name in entity)
    ]
    if not fits:
        return None
    best = min(fits, key=rank)
    parts = dict(best)
    return Limit(quotas[best], (user if "user" in parts else None, client if "client-id" in parts else None))


NAMES = st.sampled_from([..., None, "a", "b", "<default>"])
ENTITIES = st.builds(of, NAMES, NAMES).filter(bool)
HISTORY = st.lists(st.tuples(ENTITIES, st.sampled_from([None, 1.0, 2.0])), max_size=40)
WHO = st.sampled_from(["a", "b", "c", "", "<default>"])


@settings(max_examples=100)
@given(HISTORY, st.lists(st.tuples(WHO, WHO), max_size=10))
def test_any_history_is_as_a_fresh_index_and_as_the_oracle(history: Any, asked: list[tuple[str, str]]) -> None:
    index, left = QuotaIndex(), dict[Any, float]()
    for entity, value in history:
        index.put(entity, KEY, value)
        left.pop(entity, None)
        if value is not None:
            left[entity] = value
    assert index == index_of((entity, KEY, value) for entity, value in left.items())
    for user, client in asked:
        assert index.limit(KEY, user, client) == oracle(left, user, client)
