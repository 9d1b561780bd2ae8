"""Quotas of clients (KIP-546).

An entity is a mapping of `user`, `client-id` or `ip` to a name; the name None is the default of that type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.cluster.retried_change import RetriedChange
from quorumlog.errors import ErrorCode
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaAlteration,
    QuotaComponent,
    QuotaOp,
)
from quorumlog.security.quota.entity import Entity, entity_of

ENTITIES_PER_REQUEST = 80
EXACT, DEFAULT, ANY = 0, 1, 2  # Kafka's numbers of match types


class AnyName:
    """In a filter: every name of the type, and its default."""


ANY_NAME = AnyName()
Filter = Mapping[str, "str | AnyName | None"]  # by type: a name; None: the default


class QuotaChange(NamedTuple):
    """Of one entity; carried out as a whole or not at all. values: by key; None: the quota is removed."""

    entity: Mapping[str, str | None]
    values: Mapping[str, float | None]


class QuotaOutcome(NamedTuple):
    """What became of one entity's change. error: NONE: done."""

    error: ErrorCode
    message: str = ""


async def describe_quotas(link: Link, wanted: Filter, strict: bool) -> dict[Entity, dict[str, float]]:
    """See `AsyncAdmin.describe_client_quotas`."""
    request = DescribeClientQuotasRequest(
        components=tuple(_component(kind, match) for kind, match in wanted.items()), strict=strict
    )

    async def ask() -> DescribeClientQuotasResponse:
        response: DescribeClientQuotasResponse = await link.call_any(request, link.options.request_timeout_ms)
        check(response)
        return response

    response = await link.until(ask, link.options.default_api_timeout_ms)
    return {_entity(entry.entity): {one.key: one.value for one in entry.values} for entry in response.entries}


async def alter_quotas(link: Link, changes: Iterable[QuotaChange], validate_only: bool) -> dict[Entity, QuotaOutcome]:
    """See `AsyncAdmin.alter_client_quotas`."""
    entries = tuple(_alteration(change) for change in changes)
    outcomes: dict[Entity, QuotaOutcome] = {}
    for first in range(0, len(entries), ENTITIES_PER_REQUEST):
        part = entries[first : first + ENTITIES_PER_REQUEST]
        request = AlterClientQuotasRequest(entries=part, validate_only=validate_only)
        response = await RetriedChange(link, request).carry_out()  # carried out twice, it does the same
        for one in response.entries:
            outcomes[_entity(one.entity)] = QuotaOutcome(ErrorCode(one.error_code), one.error_message)
    return outcomes


def _alteration(change: QuotaChange) -> QuotaAlteration:
    """Raises BadQuota."""
    return QuotaAlteration(
        entity=tuple(
            QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity_of(change.entity.items())
        ),
        ops=tuple(
            QuotaOp(key=key, remove=True) if value is None else QuotaOp(key=key, value=value)
            for key, value in change.values.items()
        ),
    )


def _component(kind: str, match: str | AnyName | None) -> QuotaComponent:
    if isinstance(match, AnyName):
        return QuotaComponent(entity_type=kind, match_type=ANY)
    if match is None:
        return QuotaComponent(entity_type=kind, match_type=DEFAULT)
    return QuotaComponent(entity_type=kind, match_type=EXACT, match=match)


def _entity(parts: tuple[QuotaEntity, ...]) -> Entity:
    return tuple(sorted(((one.entity_type, one.entity_name) for one in parts), key=lambda part: part[0]))
