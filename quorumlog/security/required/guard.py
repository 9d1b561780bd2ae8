"""Stands before the handlers of a broker: what the table of rights denies never reaches one.

It is made only where access rules are in force. A request begins in the turn in which it came, as without a guard, so
ordered requests keep their order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.metadata_end import heard
from quorumlog.security.principal import Principal
from quorumlog.security.required.asker import Asker, Denials, Rules, Topics
from quorumlog.security.required.changes import change, is_change
from quorumlog.security.required.fetch import FetchSessionRights
from quorumlog.security.required.size import check_size
from quorumlog.security.required.table import rows


class _Listener(Protocol):
    @property
    def name(self) -> str: ...


class Origin(Protocol):
    """What it reads of `transport.Context`."""

    principal: Principal
    client_host: str

    @property
    def request_id(self) -> str: ...

    @property
    def listener(self) -> _Listener: ...


class Rights(NamedTuple):
    """Access rules that are in force in a node, and who hears of what they deny."""

    rules: Rules
    denials: Denials


class Guard:
    """Serves clients in the place of `handler`. Raises ApiError, as a handler does."""

    def __init__(
        self, handler: Callable[[Any, Any], Awaitable[Any]], rights: Rights, topics: Topics, tells_changes: bool = True
    ) -> None:
        """tells_changes: False where another node's guard has told the audit log of the request."""
        self._handler, self._topics = handler, topics
        self._rules, self._denials = rights
        self._rows = rows(FetchSessionRights())
        changes = (one.request for one in self._rows.values() if tells_changes and is_change(one.request, one.needs))
        self._told = frozenset(changes)

    async def __call__(self, context: Origin, request: Any) -> Any:
        row = self._rows.get(type(request))
        if row is None:  # a node's own call; clients are refused by the wire already
            text = f"{type(request).__name__} is for nodes of the cluster"
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
        check_size(request)
        ask = self._asker(context, request)
        judged = row.judge(ask, request)
        if judged.request is None:
            return judged.answer
        if row.request not in self._told:
            response = await self._handler(context, judged.request)
        else:
            with heard() as written:
                response = await self._handler(context, judged.request)
            self._denials.changed(change(ask, judged.request, response, row.needs, written.end))
        return response if judged.finish is None else judged.finish(response)

    def _asker(self, context: Origin, request: Any) -> Asker:
        return Asker(
            context.principal,
            context.client_host,
            self._rules,
            self._topics,
            self._denials,
            context.listener.name,
            type(request),
            context.request_id,
        )
