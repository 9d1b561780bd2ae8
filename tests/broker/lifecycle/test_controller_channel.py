"""The channel follows the active controller; connections answer from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import pytest
from broker_fakes import CONTROLLER, FakeSubscription

from quorumlog.errors import ErrorCode
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import BrokerHeartbeatResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Connection, NotDelivered, OutcomeUnknown, Transport
from quorumlog_broker.lifecycle.controller_channel import ControllerChannel, OwnController
from quorumlog_quorum.metadata.loader import ActiveController

OTHER = ActiveController(2, 4, Endpoint(name="INTERNAL", host="127.0.0.1", port=29093))
MOVED = BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)
DONE = BrokerHeartbeatResponse(is_fenced=False)


class LoopClock:
    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1_000)

    def wall_ms(self) -> int:
        return 0


@dataclass
class FakeConnection:
    address: Address
    answers: list[Any]
    closed: bool = False
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        return self._answer()

    async def _answer(self) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def on_closed(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    async def close(self) -> None:
        self.closed = True


@dataclass
class FakeTransport:
    """`answers` by port; every connection to a port takes from the same list."""

    answers: dict[int, list[Any]]
    made: list[FakeConnection] = field(default_factory=list)

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> FakeConnection:
        assert internal
        self.made.append(FakeConnection(address, self.answers[address.port]))
        return self.made[-1]


Scene = Callable[[ControllerChannel, FakeSubscription, FakeTransport], Coroutine[Any, Any, None]]


def play(answers: dict[int, list[Any]], scene: Scene, own: OwnController | None = None) -> None:
    async def run() -> None:
        subscription, transport = FakeSubscription(), FakeTransport(answers)
        crashes: list[BaseException] = []
        nursery = Nursery(lambda _name, error: crashes.append(error))
        channel = ControllerChannel(
            subscription=subscription,
            transport=cast(Transport, transport),
            clock=LoopClock(),
            rng=Random(1),
            nursery=nursery,
            client_id="broker-1",
            own=own,
        )
        await scene(channel, subscription, transport)
        await channel.close()
        await nursery.close()
        assert crashes == []

    asyncio.run(run())


def test_calls_share_one_connection() -> None:
    async def scene(channel: ControllerChannel, _: FakeSubscription, transport: FakeTransport) -> None:
        for _index in range(3):
            assert await channel.call("request", 1_000) == DONE
        assert [connection.address.port for connection in transport.made] == [19093]

    play({19093: [DONE, DONE, DONE]}, scene)


def test_not_controller_is_followed_to_the_next() -> None:
    async def scene(channel: ControllerChannel, subscription: FakeSubscription, transport: FakeTransport) -> None:
        call = asyncio.get_running_loop().create_task(channel.call("request", 5_000))
        await asyncio.sleep(0)
        subscription.change_controller(OTHER)
        assert await call == DONE
        assert [connection.address.port for connection in transport.made] == [19093, 29093]
        assert transport.made[0].closed

    play({19093: [MOVED], 29093: [DONE]}, scene)


def test_what_was_not_delivered_is_tried_again() -> None:
    async def scene(channel: ControllerChannel, _: FakeSubscription, __: FakeTransport) -> None:
        assert await channel.call("request", 5_000) == DONE

    play({19093: [NotDelivered("refused"), NotDelivered("refused"), DONE]}, scene)


def test_what_may_have_been_carried_out_is_not() -> None:
    async def scene(channel: ControllerChannel, _: FakeSubscription, __: FakeTransport) -> None:
        with pytest.raises(OutcomeUnknown):
            await channel.call("request", 5_000)

    play({19093: [OutcomeUnknown("broke"), DONE]}, scene)


def test_it_gives_up_in_time_and_says_why() -> None:
    async def scene(channel: ControllerChannel, subscription: FakeSubscription, __: FakeTransport) -> None:
        subscription.active_controller = None
        with pytest.raises(NotDelivered, match="no active controller is known"):
            await channel.call("request", 50)

    play({}, scene)


def test_a_broken_stream_is_noticed_and_the_next_call_opens_another_connection() -> None:
    async def scene(channel: ControllerChannel, _: FakeSubscription, transport: FakeTransport) -> None:
        changes: list[int] = []
        channel.on_change(lambda: changes.append(1))
        await channel.call_once("request", 1_000)
        transport.made[0].callbacks[0]()
        transport.made[0].callbacks[0]()
        assert changes == [1]
        await channel.call_once("request", 1_000)
        assert len(transport.made) == 2

    play({19093: [DONE, DONE]}, scene)


def test_a_change_to_the_same_controller_is_none() -> None:
    async def scene(channel: ControllerChannel, subscription: FakeSubscription, transport: FakeTransport) -> None:
        await channel.call_once("request", 1_000)
        subscription.change_controller(CONTROLLER)
        assert not transport.made[0].closed

    play({19093: [DONE]}, scene)


def test_calls_to_the_own_controller_take_no_wire() -> None:
    near = FakeConnection(Address("near", 0), [DONE, MOVED])

    async def scene(channel: ControllerChannel, subscription: FakeSubscription, transport: FakeTransport) -> None:
        assert await channel.call("request", 1_000) == DONE
        assert transport.made == []
        call = asyncio.get_running_loop().create_task(channel.call("request", 5_000))
        await asyncio.sleep(0)
        subscription.change_controller(OTHER)
        assert await call == DONE
        assert [connection.address.port for connection in transport.made] == [29093]
        assert near.closed

    own = OwnController(CONTROLLER.node_id, lambda _client_id: cast(Connection, near))
    play({19093: [], 29093: [DONE]}, scene, own)
