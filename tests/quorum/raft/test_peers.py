"""Calls to other nodes of the quorum: a fetch that gets no answer gives up its connection, other calls keep theirs. A
connection that will be needed soon is opened before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from raft_samples import fetch, vote

from quorumlog.messages.common import Endpoint
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, NotDelivered, OutcomeUnknown, RpcError
from quorumlog_quorum.node.peers import Peers
from quorumlog_quorum.raft import RequestFailed, Send


class FakeConnection:
    def __init__(self, address: Address, error: RpcError) -> None:
        self.address, self.error, self.closed = address, error, False
        self.calls: list[Any] = []

    async def call(self, request: Any, _timeout_ms: int) -> Any:
        self.calls.append(request)
        raise self.error

    async def close(self) -> None:
        self.closed = True


class FakeTransport:
    def __init__(self, error: RpcError) -> None:
        self.error = error
        self.made: list[FakeConnection] = []

    def connect(self, address: Address, **_: Any) -> FakeConnection:
        self.made.append(FakeConnection(address, self.error))
        return self.made[-1]


async def call_twice(message: Any, error: RpcError) -> tuple[FakeTransport, list[Any]]:
    transport, told = FakeTransport(error), asyncio.Queue[Any]()
    nursery = Nursery(lambda name, crash: pytest.fail(f"{name}: {crash}"))
    peers = Peers(
        node_id=0,
        endpoint_of=lambda _: Endpoint(name="INTERNAL", host="h", port=1),
        transport=transport,  # type: ignore[arg-type]
        nursery=nursery,
    )
    answers = []
    for correlation in (1, 2):
        peers.call(Send(1, message, correlation, 500), told.put_nowait)
        answers.append(await told.get())
        await asyncio.sleep(0)  # the connection is closed right after the answer
    await peers.close()
    return transport, answers


@pytest.mark.parametrize(
    ("message", "error", "connections"),
    [
        (fetch(0, -1).message, OutcomeUnknown("no answer in time"), 2),
        (fetch(0, -1).message, NotDelivered("its software does not know the stream"), 1),
        (vote().message, OutcomeUnknown("no answer in time"), 1),
        (vote().message, NotDelivered("refused"), 1),
    ],
    ids=["a fetch without an answer", "a fetch that was not sent", "a vote without an answer", "a vote not sent"],
)
def test_only_after_a_fetch_without_an_answer_the_next_one_goes_by_a_new_connection(
    message: Any, error: RpcError, connections: int
) -> None:
    """Fetches share a stream: behind an answer that does not come, no other one would. A connection that has sent
    nothing is as good as a new one, and better: it remembers which calls its peer does not know."""
    transport, answers = asyncio.run(call_twice(message, error))
    assert len(transport.made) == connections and all(connection.closed for connection in transport.made)
    delivered = not isinstance(error, NotDelivered)
    assert answers == [RequestFailed(1, delivered=delivered), RequestFailed(2, delivered=delivered)]


def test_a_node_that_will_be_called_soon_is_approached_once() -> None:
    async def scenario() -> FakeTransport:
        transport, told = FakeTransport(NotDelivered("refused")), asyncio.Queue[Any]()
        nursery = Nursery(lambda name, crash: pytest.fail(f"{name}: {crash}"))
        peers = Peers(
            node_id=0,
            endpoint_of=lambda node_id: Endpoint(name="INTERNAL", host="h", port=1) if node_id == 1 else None,
            transport=transport,  # type: ignore[arg-type]
            nursery=nursery,
        )
        for node_id in (1, 1, 2):  # nobody knows where node 2 is
            peers.approach(node_id)
            await asyncio.sleep(0)
        assert [type(call).__name__ for call in transport.made[0].calls] == ["ProbeRequest"]
        message: Any = vote().message
        peers.call(Send(1, message, 1, 500), told.put_nowait)
        await told.get()
        await peers.close()
        return transport

    (connection,) = asyncio.run(scenario()).made
    assert len(connection.calls) == 2
