"""Which requests change the cluster, and what the audit log says of one that was let pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.imports import ImportRecordsRequest
from quorumlog.security.authorizer import Operation
from quorumlog.security.required.asker import Asker, Change
from quorumlog.security.required.need import Need

MAX_NAMES = 20  # of one line
_CHANGING = frozenset({Operation.ALTER, Operation.ALTER_CONFIGS, Operation.CREATE, Operation.DELETE})
_OTHERS = frozenset({MetadataRequest, ImportRecordsRequest})  # a question; one of very many pieces
_LISTS = ("topics", "resources", "groups")
_NAMES = ("name", "resource_name")


def is_change(request: type, needs: tuple[Need, ...]) -> bool:
    return request not in _OTHERS and any(need.operation in _CHANGING for need in needs)


def change(ask: Asker, request: Any, response: Any, needs: tuple[Need, ...], metadata_end: int) -> Change:
    names = tuple(name for _, name in zip(range(MAX_NAMES), _names(request), strict=False))
    errors = tuple(sorted(set(_errors(response))))
    return Change(ask.principal, ask.host, ask.listener, ask.api, names, errors, needs, ask.request_id, metadata_end)


def _names(request: Any) -> Iterator[str]:
    for field in _LISTS:
        for one in getattr(request, field, ()):
            found = (
                one if isinstance(one, str) else next((getattr(one, key) for key in _NAMES if hasattr(one, key)), "")
            )
            if found:
                yield found


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
