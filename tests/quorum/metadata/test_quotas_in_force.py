"""The quotas of a node are those of the newest image, however the images came, and each change is one of the index."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metadata_samples import credential, quota
from test_rules_in_force import after, rule

from quorumlog.messages.metadata_records import MetadataRecord
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.security.quota.resolution import QuotaIndex, index_of
from quorumlog.slices import at_once
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.image_diff import delta_between
from quorumlog_quorum.metadata.quotas import all_quotas
from quorumlog_quorum.metadata.quotas_in_force import QuotasInForce

ENTITIES: list[tuple[tuple[str, str | None], ...]] = [
    (("user", "a"),),
    (("user", None),),
    (("client-id", "c"), ("user", "a")),
    (("user", "a"), ("client-id", "c")),  # the same in another order, as Kafka may write it
    (("ip", "10.0.0.1"),),
]


def of_image(image: Image) -> QuotaIndex:
    found = all_quotas(image.access)
    return index_of((entity, key, value) for entity, values in found.items() for key, value in values.items())


def take(quotas: QuotasInForce, delta: Delta, image: Image) -> None:
    if (work := quotas.on_image(delta, image)) is not None:
        at_once(work)


STEPS = st.lists(
    st.lists(st.tuples(st.sampled_from(ENTITIES), st.sampled_from([1.0, 2.0]), st.booleans()), max_size=6), max_size=8
)


@given(STEPS, st.integers(1, 6), st.sets(st.integers(0, 7)))
def test_the_quotas_in_force_are_those_of_the_image(steps: Any, changes_at_once: int, jumps: set[int]) -> None:
    """jumps: images that the node gets as a snapshot, together with the one before."""
    node = NodeQuotas()
    quotas, image, taken = QuotasInForce(node, changes_at_once), EMPTY, EMPTY
    for number, step in enumerate(steps):
        records: list[MetadataRecord] = [rule(number + 1), credential(f"user{number}")]
        records += [quota(value, *entity, remove=remove) for entity, value, remove in step]
        delta, image = after(image, *records)
        if number in jumps:
            continue
        if taken is not delta.base:
            delta = at_once(delta_between(taken, image))
        take(quotas, delta, image)
        taken = image
        assert node.index == of_image(image)


def test_a_change_costs_one_change_of_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are. A change of rules or credentials costs none."""
    node = NodeQuotas()
    quotas = QuotasInForce(node)
    delta, image = after(EMPTY, *(quota(1.0, ("user", f"u{number}")) for number in range(5_000)))
    take(quotas, delta, image)
    index, puts = node.index, list[Any]()
    put = QuotaIndex.put

    def counted(self: QuotaIndex, *what: Any) -> None:
        puts.append(what)
        put(self, *what)

    monkeypatch.setattr(QuotaIndex, "put", counted)
    take(quotas, *(changed := after(image, rule(1), credential("c"))))
    assert puts == []
    take(quotas, *(changed := after(changed[1], quota(2.0, ("user", "u7")))))
    take(quotas, *after(changed[1], quota(0.0, ("user", "u8"), remove=True)))
    assert puts == [((("user", "u7"),), "producer_byte_rate", 2.0), ((("user", "u8"),), "producer_byte_rate", None)]
    assert node.index is index
    monkeypatch.undo()
    assert node.index.limit("producer_byte_rate", "u7", "") == (2.0, ("u7", None))


def test_many_changes_take_effect_together() -> None:
    node = NodeQuotas()
    quotas = QuotasInForce(node, changes_at_once=3)
    delta, image = after(EMPTY, *(quota(1.0, ("user", f"u{number}")) for number in range(8)))
    work = quotas.on_image(delta, image)
    assert work is not None
    assert sum(1 for _ in work if not node.index.has_clients) >= 2
    assert node.index == of_image(image)
