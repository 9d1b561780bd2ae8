"""AlterClientQuotas: forwarded to the controller. DescribeClientQuotas: from this broker's metadata (KIP-546)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuota,
    QuotaComponent,
    QuotaValue,
)
from quorumlog.rpc.transport import Context
from quorumlog.security.quota.entity import CLIENT_ID, IP, USER, Entity, entity_of
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.quotas import all_quotas, entity_parts, parts_of, quota_value

FORWARD_TIMEOUT_MS = 30_000  # the request names none
EXACT, DEFAULT, ANY = 0, 1, 2  # Kafka's numbers of match types

Matches = Callable[[str | None], bool]  # the name of an entity's part; None: the default


async def handle_describe_quotas(
    services: Services, _context: Context, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Raises ApiError: INVALID_REQUEST; UNSUPPORTED_VERSION for a type of entity that is not known."""
    wanted = _filter(request.components)
    if not wanted and request.strict:
        return DescribeClientQuotasResponse()
    found = all_quotas(services.caught_up_image().access)
    entries = [
        DescribedQuota(
            entity=entity_parts(entity),
            values=tuple(QuotaValue(key=key, value=value) for key, value in sorted(values.items())),
        )
        for entity, values in found.items()
        if _fits(dict(entity), wanted, request.strict)
    ]
    return DescribeClientQuotasResponse(entries=tuple(sorted(entries, key=_order)))


async def handle_alter_quotas(
    services: Services, context: Context, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    response: AlterClientQuotasResponse = await forward(services.controller_for(context), request, FORWARD_TIMEOUT_MS)
    if not request.validate_only:
        done = {frozenset(parts_of(one.entity)) for one in response.entries if one.error_code == ErrorCode.NONE}
        await until_image(services, lambda image: _shows(image, request, done))
    return response


def _filter(components: Iterable[QuotaComponent]) -> dict[str, Matches]:
    wanted: dict[str, Matches] = {}
    for one in components:
        if one.entity_type in wanted:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the filter has {one.entity_type} twice")
        if not one.entity_type:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a component of the filter has no type")
        if one.entity_type not in (USER, CLIENT_ID, IP):
            text = f"{one.entity_type!r} is not user, client-id or ip"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
        wanted[one.entity_type] = _matches(one)
    if IP in wanted and len(wanted) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a filter for an ip has no other component")
    return wanted


def _matches(one: QuotaComponent) -> Matches:
    if one.match_type not in (EXACT, DEFAULT, ANY):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"match type {one.match_type} is not 0, 1 or 2")
    if (one.match is not None) != (one.match_type == EXACT):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a match is given with match type 0 only, not with {one.match_type}")
    if one.match_type == ANY:
        return lambda _name: True
    match = one.match
    return lambda name: name == match  # the default has no name


def _fits(entity: dict[str, str | None], wanted: dict[str, Matches], strict: bool) -> bool:
    if strict and entity.keys() != wanted.keys():
        return False
    return all(kind in entity and matches(entity[kind]) for kind, matches in wanted.items())


def _order(entry: DescribedQuota) -> tuple[tuple[str, bool, str], ...]:
    return tuple((one.entity_type, one.entity_name is not None, one.entity_name or "") for one in entry.entity)


def _shows(image: Image, request: AlterClientQuotasRequest, done: set[frozenset[tuple[str, str | None]]]) -> bool:
    for asked in request.entries:
        if frozenset(parts_of(asked.entity)) in done:
            entity: Entity = entity_of(parts_of(asked.entity))
            for op in asked.ops:
                if quota_value(image.access, entity, op.key) != (None if op.remove else op.value):
                    return False
    return True
