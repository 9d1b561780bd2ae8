"""A transport whose listeners show what a broker answers, at the moment of the answer.

Invariants that compare an answer with the state of its broker need that moment: a message on the simulated network
leaves later, and the lane's answers do not name their request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProduceRequest
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

WATCHED = frozenset({ProduceRequest, FetchRequest})

OnAnswer = Callable[[Any, Any], None]  # request, response; the response is None for acks=0


class WatchedTransport:
    """`transport.Transport`: `inner`, whose handlers are watched."""

    def __init__(self, inner: Transport, on_answer: OnAnswer) -> None:
        self._inner, self._on_answer = inner, on_answer

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Connection:
        return self._inner.connect(address, internal=internal, client_id=client_id)

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        def handle(context: Context, request: Any) -> Awaitable[Any]:
            answer = handler(context, request)
            return self._watch(request, answer) if type(request) in WATCHED else answer

        return await self._inner.listen(listener, handle)

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        return await self._inner.probe(address, timeout_ms)

    async def _watch(self, request: Any, answer: Awaitable[Any]) -> Any:
        response = await answer
        self._on_answer(request, response)
        return response
