"""The lifecycle's shell and the directory assigner, against a channel that records its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, cast

import pytest
from broker_fakes import uuid

from quorumlog.errors import ErrorCode
from quorumlog.messages.controller import (
    AssignReplicasToDirectoriesRequest,
    AssignReplicasToDirectoriesResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    DirectoryAssignment,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import NotDelivered
from quorumlog.settings.lifecycle import LifecycleConfig
from quorumlog_broker.lifecycle.controller_channel import ControllerChannel
from quorumlog_broker.lifecycle.directory_assigner import MAX_PER_REQUEST, DirectoryAssigner
from quorumlog_broker.lifecycle.lifecycle import Lifecycle, LifecycleState
from quorumlog_broker.lifecycle.shell import OTHER_SESSION, LifecycleShell
from tests.rules import rule


class LoopClock:
    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1_000)

    def wall_ms(self) -> int:
        return 0


@dataclass
class FakeChannel:
    """A controller that agrees with everything, unless `silent`; `lost`: so many calls fail first."""

    lost: int = 0
    refusals: list[str] = field(default_factory=list)  # of the first registrations
    silent: bool = False
    session_ms: int = 0
    asked: list[Any] = field(default_factory=list)
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def on_change(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    async def call_once(self, request: Any, timeout_ms: int) -> Any:
        self.asked.append(request)
        if self.lost > 0:
            self.lost -= 1
            raise NotDelivered("refused")
        if self.silent:
            await asyncio.get_running_loop().create_future()
        if self.refusals and isinstance(request, RegisterBrokerRequest):
            text = self.refusals.pop(0)
            return RegisterBrokerResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION, error_message=text)
        found = answer(request)
        return (
            replace(found, session_timeout_ms=self.session_ms) if isinstance(request, BrokerHeartbeatRequest) else found
        )

    async def call(self, request: Any, timeout_ms: int) -> Any:
        return await self.call_once(request, timeout_ms)


def answer(request: Any) -> Any:
    match request:
        case RegisterBrokerRequest():
            return RegisterBrokerResponse(broker_epoch=5)
        case BrokerHeartbeatRequest():
            return BrokerHeartbeatResponse(is_fenced=request.want_fence, should_shutdown=request.want_shutdown)
        case _:
            return AssignReplicasToDirectoriesResponse()


def play(
    channel: FakeChannel, scene: Callable[[LifecycleShell, list[LifecycleState]], Coroutine[Any, Any, None]]
) -> None:
    async def run() -> None:
        crashes: list[BaseException] = []
        states: list[LifecycleState] = []
        nursery = Nursery(lambda _name, error: crashes.append(error))
        registration = RegisterBrokerRequest(broker_id=1, cluster_id="c", incarnation_id=uuid(1))
        shell = LifecycleShell(
            core=Lifecycle(
                node_id=1,
                incarnation_id=uuid(1),
                config=LifecycleConfig(heartbeat_interval_ms=10),
                offline_directories=tuple,
            ),
            channel=cast(ControllerChannel, channel),
            clock=LoopClock(),
            nursery=nursery,
            registration=lambda: registration,
            on_registered=lambda _: None,
            on_state=states.append,
            on_fatal=lambda reason: crashes.append(AssertionError(reason)),
        )
        async with asyncio.timeout(10):
            await scene(shell, states)
        await nursery.close()
        assert crashes == []

    asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the scene has a deadline
        await asyncio.sleep(0.001)


def test_from_registration_to_an_orderly_end() -> None:
    channel = FakeChannel(lost=2)

    async def scene(shell: LifecycleShell, states: list[LifecycleState]) -> None:
        shell.start()
        shell.on_metadata(6, ready=True)
        await until(lambda: shell.state is LifecycleState.RUNNING)
        assert (shell.broker_epoch, shell.fenced) == (5, False)
        await shell.stop(controlled=True)
        said = len(channel.asked)
        await asyncio.sleep(0.05)
        assert len(channel.asked) == said
        assert [state.value for state in states] == [
            "recovery",
            "running",
            "pending controlled shutdown",
            "shutting down",
        ]

    play(channel, scene)
    assert [type(request) for request in channel.asked[:3]] == [RegisterBrokerRequest] * 3


def test_a_refused_registration_is_told_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    """Another process with the same node.id waits for a minute; it said nothing before the end of that."""
    channel = FakeChannel(refusals=["1 is alive", "1 is alive", "a directory belongs to 2", "1 is alive"])

    async def scene(shell: LifecycleShell, _states: list[LifecycleState]) -> None:
        shell.start()
        shell.on_metadata(6, ready=True)
        await until(lambda: shell.state is LifecycleState.RUNNING)
        await shell.stop(controlled=False)

    play(channel, scene)
    told = "broker 1 is not registered yet, and tries again: "
    assert caplog.messages == [told + "1 is alive", told + "a directory belongs to 2", told + "1 is alive"]


def test_a_session_of_another_length_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    channel = FakeChannel(session_ms=4_000)

    async def scene(shell: LifecycleShell, _states: list[LifecycleState]) -> None:
        shell.start()
        shell.on_metadata(6, ready=True)
        await until(lambda: len(channel.asked) > 4)
        await shell.stop(controlled=False)

    play(channel, scene)
    assert caplog.messages == [OTHER_SESSION % (1, 9_000, 4_000)]


def test_a_new_controller_is_called_though_the_old_one_has_not_answered() -> None:
    channel = FakeChannel()

    async def scene(shell: LifecycleShell, _: list[LifecycleState]) -> None:
        shell.start()
        shell.on_metadata(6, ready=True)
        await until(lambda: shell.state is LifecycleState.RUNNING)
        channel.silent = True
        await until(lambda: channel.asked[-1].want_fence is False)
        said = len(channel.asked)
        await until(lambda: len(channel.asked) > said)
        said = len(channel.asked)
        channel.silent = False
        channel.callbacks[0]()
        await until(lambda: len(channel.asked) > said)
        await shell.stop(controlled=False)

    play(channel, scene)


def test_a_stop_that_hangs_is_cut_short() -> None:
    channel = FakeChannel(silent=True)

    async def scene(shell: LifecycleShell, _: list[LifecycleState]) -> None:
        shell.start()
        await until(lambda: len(channel.asked) == 1)
        await shell.stop(controlled=False)
        assert shell.state is LifecycleState.SHUTTING_DOWN

    play(channel, scene)


@rule("kraft 10.8")
def test_assignments_are_sent_in_pieces_until_none_is_pending() -> None:
    pending = [DirectoryAssignment(topic_id=uuid(1), index=i, directory_id=uuid(2)) for i in range(MAX_PER_REQUEST + 1)]
    channel = FakeChannel(lost=1)

    async def run() -> None:
        assigner = DirectoryAssigner(
            node_id=1, pending=lambda: pending, broker_epoch=lambda: 5, channel=channel, rng=Random(1)
        )
        nursery = Nursery(lambda name, error: None)
        nursery.start(assigner.run(), "assigner")
        assigner.wake()
        async with asyncio.timeout(10):
            await until(lambda: len(channel.asked) == 2)
            del pending[:MAX_PER_REQUEST]
            await until(lambda: len(channel.asked) == 3)
            pending.clear()
        await nursery.close()

    asyncio.run(run())
    sizes = [len(cast(AssignReplicasToDirectoriesRequest, request).assignments) for request in channel.asked]
    assert sizes == [MAX_PER_REQUEST, MAX_PER_REQUEST, 1]
