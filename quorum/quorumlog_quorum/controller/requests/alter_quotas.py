"""AlterClientQuotas: sets and removes quotas of clients (KIP-546, Kafka's ClientQuotaControlManager).

- The changes of an entity are carried out together or not at all; each entity is refused alone. What is right goes into
  one batch of the log. An entity that the request names twice is refused: neither of the two is carried out.
- A value that is there already, and the removal of one that is not, write no record and are no error.
"""

from __future__ import annotations

from collections import Counter

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import ClientQuotaRecord
from quorumlog.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuota,
    QuotaAlteration,
)
from quorumlog.security.quota.entity import BadQuota, check_key, check_value, entity_of
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.engine.limits import MAX_QUOTAS_PER_REQUEST
from quorumlog_quorum.metadata.features import ACCESS_LEVEL
from quorumlog_quorum.metadata.quotas import parts_of, quota_value, remove_quota, set_quota


def alter_quotas(draft: Draft, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """With `validate_only` the response is the same, but nothing is changed. Raises ApiError(POLICY_VIOLATION) for too
    many changes."""
    changes = sum(max(1, len(one.ops)) for one in request.entries)
    if changes > MAX_QUOTAS_PER_REQUEST:
        text = f"{changes} changes of quotas in one request, limit {MAX_QUOTAS_PER_REQUEST}; send several requests"
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    counts = Counter(frozenset(parts_of(one.entity)) for one in request.entries)
    results, records = [], []
    for one in request.entries:
        try:
            if counts[frozenset(parts_of(one.entity))] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "this entity is in the request twice")
            records += _records(draft, one)
            results.append(AlteredQuota(entity=one.entity))
        except ApiError as error:
            results.append(AlteredQuota(entity=one.entity, error_code=error.code, error_message=error.message))
    if not request.validate_only:
        for record in records:
            draft.add(record)
    return AlterClientQuotasResponse(entries=tuple(results))


def _records(draft: Draft, asked: QuotaAlteration) -> list[ClientQuotaRecord]:
    """Checks everything. Raises ApiError."""
    if draft.level < ACCESS_LEVEL:
        text = f"client quotas need metadata.version {ACCESS_LEVEL}; it is {draft.level}: quorumlog feature upgrade"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    access = draft.image.access
    records: dict[str, ClientQuotaRecord | None] = {}
    try:
        entity = entity_of(parts_of(asked.entity))
        for op in asked.ops:
            if op.key in records:
                raise BadQuota(f"{op.key} is changed twice")
            old = quota_value(access, entity, op.key)
            if op.remove:  # also of a key that is none: there is nothing to remove (as in Kafka)
                records[op.key] = None if old is None else remove_quota(entity, op.key)
            else:
                check_key(entity, op.key)
                check_value(entity, op.key, op.value)
                records[op.key] = None if old == op.value else set_quota(entity, op.key, op.value)
    except BadQuota as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return [record for record in records.values() if record is not None]
