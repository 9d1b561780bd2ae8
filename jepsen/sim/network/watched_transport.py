"""A transport whose listeners show what a node answers, at the moment of the answer.

Invariants that compare an answer with the state of its broker need that moment: a message on the simulated network
leaves later, and the lane's answers do not name their request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
from quorumlog_quorum.controller.requests.requests import RULES

WATCHED = frozenset({ProduceRequest, FetchRequest})

ANSWERED_BY_CONTROLLERS = frozenset({*RULES, DescribeQuorumRequest})  # only used with `in`

OnOutcome = Callable[[Any], None]  # the response, or the ApiError
OnAsked = Callable[[Any], OnOutcome]
OnAnswer = Callable[[Any, Any], None]  # request, response; the response is None for acks=0


class WatchedTransport:
    """`transport.Transport`: `inner`, whose handlers are watched.

    on_asked: called with each request that a controller answers, if it comes to an internal listener. What it returns
    is called with the response, or with the ApiError.
    """

    def __init__(self, inner: Transport, on_answer: OnAnswer, on_asked: OnAsked) -> None:
        self._inner, self._on_answer, self._on_asked = inner, on_answer, on_asked

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Connection:
        return self._inner.connect(address, internal=internal, client_id=client_id)

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        def handle(context: Context, request: Any) -> Awaitable[Any]:
            if listener.internal and type(request) in ANSWERED_BY_CONTROLLERS:
                return self._ask_controller(handler, context, request)
            answer = handler(context, request)
            return self._watch(request, answer) if type(request) in WATCHED else answer

        return await self._inner.listen(listener, handle)

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        return await self._inner.probe(address, timeout_ms)

    def _ask_controller(self, handler: Handler, context: Context, request: Any) -> Awaitable[Any]:
        """The handler is called at once: the order of its calls is the order of the operations."""
        on_outcome = self._on_asked(request)
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
