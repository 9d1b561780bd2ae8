"""A transport whose listeners show what a node answers, at the moment of the answer.

Invariants that compare an answer with the state of its broker need that moment: a message on the simulated network
leaves later, and the lane's answers do not name their request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from quorumlog.errors import ApiError
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.messages.quorum import DescribeQuorumRequest
from quorumlog.rpc.transport import (
    Address,
    Connection,
    Context,
    Handler,
    Listener,
    ProbeResult,
    Server,
    Transport,
)
from quorumlog.security.protocol import SecurityProtocol
from quorumlog_quorum.controller.requests.requests import RULES

WATCHED = frozenset({ProduceRequest, FetchRequest})

ANSWERED_BY_CONTROLLERS = frozenset({*RULES, DescribeQuorumRequest})  # only used with `in`

OnOutcome = Callable[[Any], None]  # the response, or the ApiError
OnAsked = Callable[[Any], OnOutcome]
OnAnswer = Callable[[Any, Any], None]  # request, response; the response is None for acks=0
OnServed = Callable[[Context, Any], OnOutcome]


class WatchedTransport:
    """`transport.Transport`: `inner`, whose handlers are watched.

    on_asked: called with each request that a controller answers, if it comes to an internal listener. What it returns
    is called with the response, or with the ApiError.
    """

    def __init__(
        self, inner: Transport, on_answer: OnAnswer, on_asked: OnAsked, on_served: OnServed | None = None
    ) -> None:
        """on_served: of a cluster that knows its clients: as `on_asked`, with every request at every listener. Nobody
        reads the network of such a cluster, as if it had TLS."""
        self._inner, self._on_answer, self._on_asked, self._on_served = inner, on_answer, on_asked, on_served

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Connection:
        return self._inner.connect(address, internal=internal, client_id=client_id)

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        def handle(context: Context, request: Any) -> Awaitable[Any]:
            if listener.internal and type(request) in ANSWERED_BY_CONTROLLERS:
                return self._ask_controller(handler, context, request)
            answer = handler(context, request)
            return self._watch(request, answer) if type(request) in WATCHED else answer

        on_served = self._on_served
        if on_served is None:
            return await self._inner.listen(listener, handle)
        private = replace(listener, security=SecurityProtocol.SSL)
        return await self._inner.listen(private, lambda *asked: self._serve(handle, on_served, *asked))

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        return await self._inner.probe(address, timeout_ms)

    def _serve(self, handler: Handler, on_served: OnServed, context: Context, request: Any) -> Awaitable[Any]:
        return self._tell(handler, context, request, on_served(context, request))

    def _ask_controller(self, handler: Handler, context: Context, request: Any) -> Awaitable[Any]:
        return self._tell(handler, context, request, self._on_asked(request))

    def _tell(self, handler: Handler, context: Context, request: Any, on_outcome: OnOutcome) -> Awaitable[Any]:
        """The handler is called at once: the order of its calls is the order of the operations."""
        try:
            answer = handler(context, request)
        except ApiError as error:
            on_outcome(error)
            raise
        return self._watch_outcome(answer, on_outcome)

    async def _watch_outcome(self, answer: Awaitable[Any], on_outcome: OnOutcome) -> Any:
        try:
            response = await answer
        except ApiError as error:
            on_outcome(error)
            raise
        on_outcome(response)
        return response

    async def _watch(self, request: Any, answer: Awaitable[Any]) -> Any:
        response = await answer
        self._on_answer(request, response)
        return response
