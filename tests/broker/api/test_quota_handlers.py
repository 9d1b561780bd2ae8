"""DescribeClientQuotas: filters beside a second answer, and every refusal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from broker_fakes import FakeContext, Fakes, image_of, usual_image
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.metadata_records import ClientQuotaRecord
from quorumlog.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuota,
    DescribeClientQuotasRequest,
    QuotaAlteration,
    QuotaComponent,
    QuotaOp,
)
from quorumlog_broker.api.handlers import HANDLERS

Entity = dict[str, str | None]
KEY = "producer_byte_rate"
NAMES = [None, "a", "<default>"]
USERS = [{"user": name} for name in NAMES]
CLIENTS = [{"client-id": name} for name in NAMES]
BOTH = [{"user": user, "client-id": client} for user in NAMES for client in NAMES]
ADDRESSES: list[Entity] = [{"ip": None}, {"ip": "10.0.0.1"}]
ALL: list[Entity] = [*USERS, *CLIENTS, *BOTH, *ADDRESSES]


def parts(entity: Entity) -> tuple[QuotaEntity, ...]:
    return tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity.items())


def record(entity: Entity, value: float, key: str = KEY) -> ClientQuotaRecord:
    return ClientQuotaRecord(entity=parts(entity), key=key, value=value)


def fakes() -> Fakes:
    found = Fakes()
    records = [record(entity, number + 1) for number, entity in enumerate(ALL)]
    found.subscription.image = image_of([*records, record({"user": "a"}, 0.5, "request_percentage")], usual_image())
    return found


def ask(fakes: Fakes, request: Any) -> Any:
    async def run() -> Any:
        return await HANDLERS[type(request)](fakes.services(), FakeContext(), request)

    return asyncio.run(run())


def described(*components: QuotaComponent, strict: bool = False) -> list[Entity]:
    answer = ask(fakes(), DescribeClientQuotasRequest(components=components, strict=strict))
    return [{one.entity_type: one.entity_name for one in entry.entity} for entry in answer.entries]


def component(kind: str, match_type: int, match: str | None = None) -> QuotaComponent:
    return QuotaComponent(entity_type=kind, match_type=match_type, match=match)


def by_text(entities: list[Entity]) -> list[str]:
    return sorted(repr(sorted(entity.items())) for entity in entities)


MATCHES = st.one_of(
    st.sampled_from(["a", "<default>", "nobody"]).map(lambda name: (0, name)), st.just((1, None)), st.just((2, None))
)


@given(user=st.none() | MATCHES, client=st.none() | MATCHES, strict=st.booleans())
def test_filters_agree_with_looking_at_each_entity(user: Any, client: Any, strict: bool) -> None:
    asked = {kind: one for kind, one in (("user", user), ("client-id", client)) if one is not None}

    def fits(entity: Entity) -> bool:
        for kind, (match_type, match) in asked.items():
            if kind not in entity or (match_type == 0 and entity[kind] != match):
                return False
            if match_type == 1 and entity[kind] is not None:
                return False
        return not strict or set(entity) == set(asked)

    found = described(*(component(kind, *one) for kind, one in asked.items()), strict=strict)
    assert by_text(found) == by_text([entity for entity in ALL if fits(entity)])


def test_values_are_told_by_key_and_addresses_by_their_own_filter() -> None:
    assert described(component("ip", 2)) == ADDRESSES
    (entry,) = ask(fakes(), DescribeClientQuotasRequest(components=(component("user", 0, "a"),), strict=True)).entries
    assert [(one.key, one.value) for one in entry.values] == [(KEY, 2.0), ("request_percentage", 0.5)]


@pytest.mark.parametrize(
    ("components", "want"),
    [
        ([component("", 2)], ErrorCode.INVALID_REQUEST),
        ([component("user", 2), component("user", 1)], ErrorCode.INVALID_REQUEST),
        ([component("group", 2)], ErrorCode.UNSUPPORTED_VERSION),
        ([component("user", 0)], ErrorCode.INVALID_REQUEST),
        ([component("user", 1, "a")], ErrorCode.INVALID_REQUEST),
        ([component("user", 2, "a")], ErrorCode.INVALID_REQUEST),
        ([component("user", 3)], ErrorCode.INVALID_REQUEST),
        ([component("ip", 2), component("user", 2)], ErrorCode.INVALID_REQUEST),
    ],
    ids=["no type", "twice", "unknown type", "no match", "default match", "any match", "match type", "ip and user"],
)
def test_refused(components: list[QuotaComponent], want: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        described(*components)
    assert caught.value.code is want


def test_a_change_is_answered_once_this_broker_shows_it() -> None:
    found, ada = fakes(), {"user": "ada"}
    found.controller.answers.append(AlterClientQuotasResponse(entries=(AlteredQuota(entity=parts(ada)),)))
    found.subscription.next_images.append(image_of([record(ada, 9)], found.subscription.image))
    change = QuotaAlteration(entity=parts(ada), ops=(QuotaOp(key=KEY, value=9.0), QuotaOp(key="x", remove=True)))
    ask(found, AlterClientQuotasRequest(entries=(change,)))
    answer = ask(found, DescribeClientQuotasRequest(components=(component("user", 0, "ada"),)))
    assert [one.value for one in answer.entries[0].values] == [9.0]
