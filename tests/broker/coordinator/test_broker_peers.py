"""Calls to other brokers: which connection carries them, and what becomes of one that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from broker_fakes import broker_record, image_of
from transaction_peers import run

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, NotDelivered, OutcomeUnknown, Transport
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_quorum.metadata.image import Image

REQUEST, ANSWER = WriteTxnMarkersRequest(), WriteTxnMarkersResponse()
LISTENER = broker_record(1).endpoints[0].name


class FakeConnection:
    def __init__(self, address: Address, answers: list[Any]) -> None:
        self.address, self._answers = address, answers
        self.calls = 0
        self.is_closed = False

    async def call(self, request: Any, timeout_ms: int) -> Any:
        assert not self.is_closed and timeout_ms > 0
        self.calls += 1
        await asyncio.sleep(0)
        answer = self._answers.pop(0) if self._answers else ANSWER
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        self.is_closed = True


class FakeTransport:
    """answers: of the calls of all connections, in their order; then ANSWER."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.made: list[FakeConnection] = []

    def connect(self, address: Address, *, internal: bool, client_id: str) -> FakeConnection:
        assert internal and client_id == "broker-1"
        self.made.append(FakeConnection(address, self.answers))
        return self.made[-1]


class World:
    def __init__(self, nursery: Nursery, *answers: Any) -> None:
        self.image: Image = image_of([broker_record(1), broker_record(2)])
        self.transport = FakeTransport(*answers)
        self.own: list[Any] = []

        async def answer_own(request: Any) -> Any:
            self.own.append(request)
            return ANSWER

        self.peers = Peers(
            1,
            {WriteTxnMarkersRequest: answer_own},
            image=lambda: self.image,
            internal_listener=LISTENER,
            transport=cast(Transport, self.transport),
            nursery=nursery,
        )


def in_world(scenario: Callable[[World], Any], *answers: Any) -> None:
    run(lambda _peers, _turn, nursery: scenario(World(nursery, *answers)))


def test_a_call_to_this_broker_takes_no_wire() -> None:
    async def scenario(world: World) -> None:
        assert await world.peers.call(1, REQUEST) is ANSWER
        assert world.own == [REQUEST] and world.transport.made == []

    in_world(scenario)


def test_a_broker_has_one_connection() -> None:
    async def scenario(world: World) -> None:
        for _ in range(3):
            assert await world.peers.call(2, REQUEST) is ANSWER
        (connection,) = world.transport.made
        assert connection.calls == 3
        await world.peers.close()
        assert connection.is_closed

    in_world(scenario)


def test_a_broker_that_is_not_in_the_metadata_is_not_called() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(NotDelivered, match="broker 9 has no listener"):
            await world.peers.call(9, REQUEST)
        assert world.transport.made == []

    in_world(scenario)


@pytest.mark.parametrize("failure", [NotDelivered("refused"), OutcomeUnknown("late")])
def test_a_connection_that_fails_is_closed_and_the_next_call_makes_another(failure: Exception) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(type(failure)):
            await world.peers.call(2, REQUEST)
        assert await world.peers.call(2, REQUEST) is ANSWER
        await asyncio.sleep(0)
        assert [one.is_closed for one in world.transport.made] == [True, False]

    in_world(scenario, failure)


def test_an_error_of_the_whole_answer_is_raised_and_the_connection_kept() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(ApiError) as caught:
            await world.peers.call(2, REQUEST)
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert await world.peers.call(2, REQUEST) is ANSWER
        assert len(world.transport.made) == 1

    in_world(scenario, WriteTxnMarkersResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message="no"))


def test_a_broker_that_has_moved_is_called_at_its_new_address() -> None:
    async def scenario(world: World) -> None:
        await world.peers.call(2, REQUEST)
        moved = broker_record(2)
        endpoint = moved.endpoints[0]
        object.__setattr__(endpoint, "port", endpoint.port + 1)
        world.image = image_of([broker_record(1), moved])
        await world.peers.call(2, REQUEST)
        await asyncio.sleep(0)
        first, second = world.transport.made
        assert (first.is_closed, second.is_closed) == (True, False)
        assert second.address.port == first.address.port + 1

    in_world(scenario)


def test_the_failure_of_an_older_connection_leaves_the_newer_one_alone() -> None:
    """Two calls fail on one connection, one behind the other."""

    async def scenario(world: World) -> None:
        results = await asyncio.gather(
            world.peers.call(2, REQUEST), world.peers.call(2, REQUEST), return_exceptions=True
        )
        assert [type(one) for one in results] == [NotDelivered, NotDelivered]
        for _ in range(2):
            await world.peers.call(2, REQUEST)
        assert [one.is_closed for one in world.transport.made] == [True, False]

    in_world(scenario, NotDelivered("a"), NotDelivered("b"))
