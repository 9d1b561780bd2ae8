"""Performs the effects of `lifecycle.py`: calls to the controller, one timer, callbacks about the state."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId, Offset
from quorumlog.messages.controller import BrokerHeartbeatRequest, RegisterBrokerRequest, RegisterBrokerResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog_broker.lifecycle.controller_channel import MOVED_ON, ControllerChannel
from quorumlog_broker.lifecycle.lifecycle import (
    CallFailed,
    ControllerChanged,
    DirectoriesChanged,
    Fatal,
    HeartbeatAnswered,
    Lifecycle,
    LifecycleEffect,
    LifecycleEvent,
    LifecycleState,
    MetadataApplied,
    Register,
    Registered,
    RegistrationOutdated,
    SendHeartbeat,
    StateChanged,
    StopWanted,
    TimerFired,
)

_log = logging.getLogger("quorumlog.broker")

REGISTER_TIMEOUT_MS = 5_000
OTHER_SESSION = "broker %d: broker.session.timeout.ms is %d here and %d at the controller; it has to be the same"
HEARTBEAT_TIMEOUT_MS = 4_500  # half of the default session, as in Kafka


class LifecycleShell:
    """Steps the core with events in order; makes one call at a time. `on_fatal` is called at most once."""

    def __init__(
        self,
        *,
        core: Lifecycle,
        channel: ControllerChannel,
        clock: Clock,
        nursery: Nursery,
        registration: Callable[[], RegisterBrokerRequest],
        on_registered: Callable[[RegisterBrokerRequest], None],
        on_state: Callable[[LifecycleState], None],
        on_fatal: Callable[[str], None],
    ) -> None:
        """on_registered: told each registration that the controller has accepted."""
        self._core = core
        self._channel = channel
        self._clock = clock
        self._nursery = nursery
        self._registration = registration
        self._on_registered = on_registered
        self._on_state = on_state
        self._on_fatal = on_fatal
        self._events: deque[LifecycleEvent] = deque()
        self._stepping = False
        self._call: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopped: asyncio.Event = asyncio.Event()
        self._refusal = ""  # that was logged last
        self._session_told_ms = 0  # likewise: of a controller

    @property
    def state(self) -> LifecycleState:
        return self._core.state

    @property
    def broker_epoch(self) -> BrokerEpoch:
        return self._core.broker_epoch

    @property
    def fenced(self) -> bool:
        return self._core.fenced

    @property
    def is_in_service(self) -> bool:
        return self._core.is_in_service(self._clock.now_ms())

    def start(self) -> None:
        self._channel.on_change(lambda: self._post(ControllerChanged()))
        self._post(TimerFired())

    def on_metadata(self, offset: Offset, ready: bool) -> None:
        """The broker has applied the metadata below `offset`. ready: its logs are open."""
        self._post(MetadataApplied(offset, ready))

    def on_directories_changed(self) -> None:
        """A directory failed, came back, was cordoned or is not cordoned any more."""
        self._post(DirectoriesChanged())

    def register_again(self) -> None:
        """The registration would say something else now."""
        self._post(RegistrationOutdated())

    async def stop(self, controlled: bool) -> None:
        """Returns once nothing is sent to the controller any more. An uncontrolled call ends a controlled one."""
        self._post(StopWanted(controlled))
        await self._stopped.wait()

    def _post(self, event: LifecycleEvent) -> None:
        self._events.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._events:
                self._perform(self._core.step(self._events.popleft(), self._clock.now_ms()))
        finally:
            self._stepping = False
        self._arm()

    def _perform(self, effects: list[LifecycleEffect]) -> None:
        for effect in effects:
            match effect:
                case Register():
                    self._start_call(self._register(), "register broker")
                case SendHeartbeat():
                    self._start_call(self._send_heartbeat(effect.request), "broker heartbeat")
                case StateChanged():
                    if effect.state is LifecycleState.SHUTTING_DOWN:
                        self._stop_calling()
                    self._on_state(effect.state)
                case Fatal():
                    self._stop_calling()
                    self._on_fatal(effect.reason)

    def _start_call(self, call: Coroutine[Any, Any, None], name: str) -> None:
        """The core has one call in flight; after a change of the controller, an older one is cancelled."""
        if self._call is not None:
            self._call.cancel()
        self._call = self._nursery.start(call, name)

    def _stop_calling(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
        self._stopped.set()

    async def _register(self) -> None:
        request = self._registration()
        try:
            answer = await self._channel.call_once(request, REGISTER_TIMEOUT_MS)
        except RpcError as error:
            self._post(CallFailed(str(error)))
        else:
            self._post(Registered(answer))
            self._tell_refusal(request, answer)
            if answer.error_code == ErrorCode.NONE:
                self._on_registered(request)

    def _tell_refusal(self, request: RegisterBrokerRequest, answer: RegisterBrokerResponse) -> None:
        """Each reason once: the core tries again for a minute, and whoever watches the start should know why."""
        refused = answer.error_code not in (ErrorCode.NONE, *MOVED_ON)
        refusal = answer.error_message or str(answer.error_code) if refused else ""
        if refusal not in ("", self._refusal):
            _log.warning("broker %d is not registered yet, and tries again: %s", request.broker_id, refusal)
        self._refusal = refusal or self._refusal

    async def _send_heartbeat(self, request: BrokerHeartbeatRequest) -> None:
        try:
            answer = await self._channel.call_once(request, HEARTBEAT_TIMEOUT_MS)
        except RpcError as error:
            self._post(CallFailed(str(error)))
        else:
            self._tell_session(request.broker_id, answer.session_timeout_ms)
            self._post(HeartbeatAnswered(answer))

    def _tell_session(self, broker_id: NodeId, theirs_ms: int) -> None:
        own_ms = self._core.config.session_timeout_ms
        if theirs_ms not in (0, own_ms, self._session_told_ms):
            self._session_told_ms = theirs_ms
            _log.warning(OTHER_SESSION, broker_id, own_ms, theirs_ms)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self._core.deadline_ms()
        if deadline_ms is not None:
            delay_ms = max(0, deadline_ms - self._clock.now_ms())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1_000, self._post, TimerFired())
