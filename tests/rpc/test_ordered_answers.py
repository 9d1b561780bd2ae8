"""The server end of an ordered stream handles so many requests at a time, and reads no further."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorumlog.messages.fetch import FetchChunkRequest, FetchChunkResponse
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.ordered_answers import MAX_HANDLED_CHUNKS, MAX_HANDLED_REQUESTS, OrderedAnswers
from quorumlog.rpc.transport import Address, Listener

LISTENER = Listener(name="L", address=Address("h", 1), internal=False)
LIMITS = [
    ("chunks", FetchChunkRequest(), FetchChunkResponse(), MAX_HANDLED_CHUNKS),
    ("others", ProduceRequest(acks=1, timeout_ms=1), ProduceResponse(), MAX_HANDLED_REQUESTS),
]


@pytest.mark.parametrize(("request_", "response", "most"), [c[1:] for c in LIMITS], ids=[c[0] for c in LIMITS])
def test_a_peer_that_takes_no_answers_is_read_up_to_a_limit(request_: Any, response: Any, most: int) -> None:
    """An answer that is ready and not taken counts: those of chunks are large."""

    async def answer(_context: Any, _request: Any) -> Any:
        return response

    async def scenario() -> None:
        crashes: list[str] = []
        dispatch = Dispatch(listener=LISTENER, identity=None, handler=answer, on_crash=lambda *_: crashes.append("x"))
        nursery = Nursery(lambda *_: crashes.append("x"))
        call = BY_REQUEST[type(request_)]
        answers = OrderedAnswers(dispatch, dispatch.context(Caller("c")), call, nursery)
        accepted = 0
        while answers.has_room:
            answers.accept(call.codec.encode_request(request_))
            accepted += 1
            await asyncio.sleep(0)
        assert accepted == most
        assert await answers.next() is not None and answers.has_room
        await nursery.close()
        assert crashes == []

    asyncio.run(scenario())
