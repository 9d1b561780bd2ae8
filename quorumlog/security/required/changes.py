"""Which requests change the cluster, and what the audit log says of one that was let pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from quorumlog.messages.backup import HoldCommitsRequest, ReadMetadataRequest
from quorumlog.messages.brokers import AclCreation, DescribeAclsRequest
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.imports import FinishImportRequest, ImportRecordsRequest
from quorumlog.messages.quotas import QuotaAlteration
from quorumlog.messages.transactions import TransactionMarker
from quorumlog.security.acl.content import content_of, describe, only_match
from quorumlog.security.authorizer import Operation
from quorumlog.security.required.asker import Asker, Change
from quorumlog.security.required.need import Need

MAX_NAMES = 20  # of one line
_CHANGING = frozenset({Operation.ALTER, Operation.ALTER_CONFIGS, Operation.CREATE, Operation.DELETE})
_OTHERS = frozenset({MetadataRequest, ImportRecordsRequest})  # a question; one of very many pieces
_LISTS = (
    "topics", "resources", "groups", "creations", "filters", "deletions", "upsertions", "entries", "updates", "dirs",
    "markers",
)  # fmt: skip
_NAMES = ("name", "resource_name", "path")
_OF_THE_REQUEST = ("name", "path", "broker_id", "voter_id", "to_node_id")  # where it has no list


def is_change(request: type, needs: tuple[Need, ...]) -> bool:
    return request not in _OTHERS and any(need.operation in _CHANGING for need in needs)


def change(ask: Asker, request: Any, response: Any, needs: tuple[Need, ...], metadata_end: int) -> Change:
    names = tuple(name for _, name in zip(range(MAX_NAMES), _names(request), strict=False))
    errors = tuple(sorted(set(_errors(response))))
    return Change(ask.principal, ask.host, ask.listener, ask.api, names, errors, needs, ask.request_id, metadata_end)


def _names(request: Any) -> Iterator[str]:
    for field in _LISTS:
        for one in getattr(request, field, ()):
            found = _name(one)
            if found:
                yield found
    if type(request) in _IN_WORDS:
        yield _IN_WORDS[type(request)](request)
    elif type(request) is FinishImportRequest:
        yield request.topic_id.hex()
    else:
        yield from (str(getattr(request, field)) for field in _OF_THE_REQUEST if hasattr(request, field))


def _name(one: Any) -> str:
    if isinstance(one, str):
        return one
    if type(one) in _IN_WORDS:
        return _IN_WORDS[type(one)](one)
    return next((getattr(one, key) for key in _NAMES if hasattr(one, key)), "")


def _filter(wanted: DescribeAclsRequest) -> str:
    """The one rule that it can match; else what it says, and what it leaves open is not told."""
    rule = only_match(wanted)
    if rule is not None:
        return describe(rule)
    told = {field.name.removesuffix("_filter"): getattr(wanted, field.name) for field in fields(wanted)}
    return ", ".join(f"{key}={value}" for key, value in told.items() if value is not None)


def _entity(one: QuotaAlteration) -> str:
    names = (f"{part.entity_type}={part.entity_name or '(default)'}" for part in one.entity)
    return f"{', '.join(names)}: {', '.join(op.key for op in one.ops)}"


_IN_WORDS: Mapping[type, Callable[[Any], str]] = {
    AclCreation: lambda one: describe(content_of(one)),
    DescribeAclsRequest: _filter,
    QuotaAlteration: _entity,
    TransactionMarker: lambda one: f"producer {one.producer_id}",
    # Both change nothing, but one tells verifiers of passwords, and the other lets commits of everybody wait.
    ReadMetadataRequest: lambda _: "all metadata",
    HoldCommitsRequest: lambda one: f"{one.lease_ms} ms for {one.holder.hex()}",
}


def _errors(response: Any) -> Iterator[int]:
    """Of the answer and of the items in it."""
    if response.error_code:
        yield int(response.error_code)
    for field in fields(response):
        value = getattr(response, field.name)
        for one in value if isinstance(value, tuple) else ():
            code = getattr(one, "error_code", 0)
            if code:
                yield int(code)
