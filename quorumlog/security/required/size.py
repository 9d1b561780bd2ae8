"""How much of a request is judged: it is bounded before the first question, since each costs some microseconds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from quorumlog.errors import ApiError, ErrorCode

MAX_ITEMS = 10_000  # of one list; the handlers have the same limit
MAX_NESTED = 100_000  # topics of all groups, or of all transactions, of one request
SUBSCRIBED = "subscribed_topic_names"
_LISTS = ("topics", "resources", "groups", "group_ids", "keys", "transactional_ids", "transactions", SUBSCRIBED)
_NESTING = ("groups", "transactions")


_known: dict[type, tuple[str, ...]] = {}  # the lists of a request, by its type


def _lists_of(request: type) -> tuple[str, ...]:
    found = _known.get(request)
    if found is None:
        names = {field.name for field in fields(request)}
        found = _known[request] = tuple(name for name in _LISTS if name in names)
    return found


def check_size(request: Any) -> None:
    """Raises ApiError(INVALID_REQUEST)."""
    for field in _lists_of(type(request)):
        items = getattr(request, field)
        if field == SUBSCRIBED:
            items = () if items is None else items.names
        if len(items) > MAX_ITEMS:
            raise _refusal(len(items), MAX_ITEMS, field)
        if field in _NESTING:
            nested = sum(map(_topics_of, items))
            if nested > MAX_NESTED:
                raise _refusal(nested, MAX_NESTED, "topics")


def _topics_of(item: Any) -> int:
    """Of a group's offsets, or of a transaction."""
    topics = getattr(item, "topics", None)
    return 0 if topics is None else len(getattr(topics, "topics", topics))


def _refusal(count: int, limit: int, what: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, f"{count} {what} in one request, limit {limit}; split it")
