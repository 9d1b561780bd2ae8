"""A broker towards the controller, from its registration to its last heartbeat. A sans-IO core.

STARTING                      register, until an active controller accepts it
RECOVERY                      heartbeats ask to stay fenced, until the metadata is applied and the logs are open
RUNNING                       heartbeats ask to be unfenced; after a wrong fencing, the next one unfences
PENDING_CONTROLLED_SHUTDOWN   heartbeats ask to shut down, until the controller agrees or does not answer in time
SHUTTING_DOWN                 nothing is sent any more

A broker that serves and is not written to rests: it beats more slowly, some times a session, until the metadata change.

Rules: one heartbeat is in flight. Each heartbeat lists the offline directories, since a response may be lost. If the
controller does not know the registration, the broker registers again (the same incarnation keeps its epoch). So it does
where it found damage that its last registration could not list. A broker stops where the controller does not get to
know in time that a directory has failed. Sources: KIP-631, KIP-858.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId, Offset, Uuid
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse, RegisterBrokerResponse
from quorumlog.settings.lifecycle import LifecycleConfig


class LifecycleState(Enum):
    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
    SHUTTING_DOWN = "shutting down"


NEXT: dict[LifecycleState, frozenset[LifecycleState]] = {
    LifecycleState.STARTING: frozenset({LifecycleState.RECOVERY, LifecycleState.SHUTTING_DOWN}),
    LifecycleState.RECOVERY: frozenset({LifecycleState.RUNNING, LifecycleState.STARTING, LifecycleState.SHUTTING_DOWN}),
    LifecycleState.RUNNING: frozenset(
        {LifecycleState.STARTING, LifecycleState.PENDING_CONTROLLED_SHUTDOWN, LifecycleState.SHUTTING_DOWN}
    ),
    LifecycleState.PENDING_CONTROLLED_SHUTDOWN: frozenset({LifecycleState.SHUTTING_DOWN}),
    LifecycleState.SHUTTING_DOWN: frozenset(),
}


class UnreportedFailures:
    """Log directories that have failed, and which the controller does not know of yet.

    As long as it does not, it lets partitions be led from them, so a broker that cannot tell it for
    `log.dir.failure.timeout.ms` stops (KIP-858).
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._since_ms: dict[Uuid, int] = {}
        self._told: set[Uuid] = set()

    @property
    def deadline_ms(self) -> int | None:
        """When the broker has to stop; None: nothing is unreported."""
        return min(self._since_ms.values()) + self._timeout_ms if self._since_ms else None

    def looked(self, offline: Iterable[Uuid], now_ms: int) -> None:
        """These are offline now. One that came back is forgotten; if it fails again, that is told anew."""
        found = set(offline)
        self._told &= found
        self._since_ms = {one: self._since_ms.get(one, now_ms) for one in sorted(found - self._told)}

    def told(self, offline: Iterable[Uuid]) -> None:
        """The controller has answered a call that named these."""
        self._told.update(offline)
        for one in self._told:
            self._since_ms.pop(one, None)


RETRY_MIN_MS = 50
URGENT_INTERVAL_MS = 100  # between heartbeats while a stop waits for the controller's consent
RETRY_MAX_MS = 1_000


@dataclass(frozen=True, slots=True)
class TimerFired:
    """`deadline_ms` may have passed; harmless if not."""


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Another controller is active, or the stream to it broke: the call in flight gets no response."""


@dataclass(frozen=True, slots=True)
class Registered:
    response: RegisterBrokerResponse


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered:
    response: BrokerHeartbeatResponse


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The call in flight (registration or heartbeat) failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class MetadataApplied:
    """The broker has applied the metadata below `offset`."""

    offset: Offset
    ready: bool  # the logs that the broker needs to serve are open


@dataclass(frozen=True, slots=True)
class DirectoriesChanged:
    """Another directory is offline or cordoned, or one has come back: the controller should know at once."""


@dataclass(frozen=True, slots=True)
class RegistrationOutdated:
    """What a registration says of this broker has changed: register again, also if one is in flight."""


@dataclass(frozen=True, slots=True)
class StopWanted:
    controlled: bool


LifecycleEvent = (
    TimerFired
    | ControllerChanged
    | Registered
    | HeartbeatAnswered
    | CallFailed
    | MetadataApplied
    | DirectoriesChanged
    | RegistrationOutdated
    | StopWanted
)


@dataclass(frozen=True, slots=True)
class Register:
    """Send a registration; answer with Registered or CallFailed."""


@dataclass(frozen=True, slots=True)
class SendHeartbeat:
    """Send on the ordered stream; answer with HeartbeatAnswered or CallFailed."""

    request: BrokerHeartbeatRequest


@dataclass(frozen=True, slots=True)
class StateChanged:
    state: LifecycleState


@dataclass(frozen=True, slots=True)
class Fatal:
    """The broker cannot go on; no other effect follows."""

    reason: str


LifecycleEffect = Register | SendHeartbeat | StateChanged | Fatal


@dataclass(slots=True)
class Lifecycle:
    """One broker's state towards the controller. Pure: no I/O, no clock.

    incarnation_id: a new one at each start of the process; it distinguishes a restart from a reconnect.
    offline_directories, cordoned_directories: those that are so now, as far as their ids are known; asked for each
        heartbeat.
    """

    node_id: NodeId
    incarnation_id: Uuid
    config: LifecycleConfig
    offline_directories: Callable[[], Iterable[Uuid]]
    state: LifecycleState = LifecycleState.STARTING
    broker_epoch: BrokerEpoch = -1
    fenced: bool = True
    metadata_offset: Offset = -1  # exclusive
    ready: bool = False
    at_rest: Callable[[], bool] = lambda: False  # nothing was written here since it was asked last
    deletions_done_before: Callable[[], Offset] = lambda: 0  # see BrokerHeartbeatRequest
    cordoned_directories: Callable[[], tuple[Uuid, ...]] = tuple
    _rests: bool = False  # as told by the last heartbeat
    _beat_ms: int = 0  # when the last heartbeat was sent
    _confirmed_ms: int | None = None  # when the last one was sent that said: it is in service; None: it is not
    _session_ms: int = field(init=False)  # the shorter one of this node's file and of the controller that answered
    _told_offset: Offset = -1  # the metadata offset in it
    _in_flight: bool = False
    _is_outdated: bool = False  # the registration in flight is
    _asked_fence: bool = True  # the last heartbeat asked to stay fenced
    _next_ms: int | None = 0  # when to call next; None: never again
    _failures: int = 0
    _give_up_ms: int | None = None  # end of the registration's or the controlled shutdown's time
    _silent_ms: int | None = None  # in a controlled shutdown: give up if no response comes before
    _last_error: str = "no controller was found"
    _listed: tuple[Uuid, ...] = ()  # the offline directories in the last heartbeat
    _unreported: UnreportedFailures = field(init=False)

    def __post_init__(self) -> None:
        self._unreported = UnreportedFailures(self.config.directory_failure_timeout_ms)
        self._session_ms = self.config.session_timeout_ms

    def deadline_ms(self) -> int | None:
        """When a TimerFired is due; None: never."""
        next_ms, unreported_ms = None if self._in_flight else self._next_ms, self._unreported_deadline_ms
        due = (next_ms, self._give_up_ms, self._silent_ms, unreported_ms)
        return min((at for at in due if at is not None), default=None)

    @property
    def _unreported_deadline_ms(self) -> int | None:
        is_registered = self.state in (LifecycleState.RECOVERY, LifecycleState.RUNNING)
        return self._unreported.deadline_ms if is_registered and self._next_ms is not None else None

    def step(self, event: LifecycleEvent, now_ms: int) -> list[LifecycleEffect]:
        match event:
            case TimerFired():
                return self._on_timer(now_ms)
            case ControllerChanged():
                self._in_flight, self._failures = False, 0
                return self._call_now(now_ms)
            case Registered():
                return self._on_registered(event.response, now_ms)
            case HeartbeatAnswered():
                return self._on_heartbeat_answered(event.response, now_ms)
            case CallFailed():
                return self._retry(event.reason, now_ms)
            case MetadataApplied():
                return self._on_metadata_applied(event, now_ms)
            case DirectoriesChanged():
                self._unreported.looked(self.offline_directories(), now_ms)
                return self._call_now(now_ms)
            case RegistrationOutdated():
                return self._on_registration_outdated(now_ms)
            case StopWanted():
                return self._on_stop_wanted(event.controlled, now_ms)
            case _:
                assert_never(event)

    def is_in_service(self, now_ms: int) -> bool:
        """Nobody has taken over what it leads for its silence: the controller counts a session from later on."""
        since_ms = self._confirmed_ms if self.state is LifecycleState.RUNNING else None
        return since_ms is not None and now_ms - since_ms < self._session_ms

    def check_invariants(self) -> None:
        assert (self.broker_epoch >= 0) or self.state in (LifecycleState.STARTING, LifecycleState.SHUTTING_DOWN)
        assert self.state is not LifecycleState.SHUTTING_DOWN or self.deadline_ms() is None

    def _on_timer(self, now_ms: int) -> list[LifecycleEffect]:
        if self.state is LifecycleState.STARTING and self._give_up_ms is None and self.broker_epoch < 0:
            self._give_up_ms = now_ms + self.config.registration_timeout_ms
        if any(at is not None and now_ms >= at for at in (self._give_up_ms, self._silent_ms)):
            return self._give_up()
        if self._unreported_deadline_ms is not None and now_ms >= self._unreported_deadline_ms:
            return self._stop_unreported()
        if self._in_flight or self._next_ms is None or now_ms < self._next_ms:
            return []
        self._in_flight = True
        self._is_outdated = False
        if self.state is LifecycleState.STARTING:
            return [Register()]
        self._beat_ms, self._told_offset = now_ms, self.metadata_offset
        self._listed = tuple(sorted(self.offline_directories()))
        self._unreported.looked(self._listed, now_ms)
        return [SendHeartbeat(self._heartbeat())]

    def _give_up(self) -> list[LifecycleEffect]:
        if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            return self._shut_down()
        self._give_up_ms = self._next_ms = None
        waited_ms = self.config.registration_timeout_ms
        return [Fatal(f"broker {self.node_id} could not register within {waited_ms} ms: {self._last_error}")]

    def _stop_unreported(self) -> list[LifecycleEffect]:
        self._give_up_ms = self._next_ms = None
        waited_ms = self.config.directory_failure_timeout_ms
        text = f"broker {self.node_id} could not tell the controller within log.dir.failure.timeout.ms ({waited_ms})"
        return [Fatal(f"{text} that a log directory has failed: {self._last_error}")]

    def _on_registered(self, response: RegisterBrokerResponse, now_ms: int) -> list[LifecycleEffect]:
        self._in_flight = False
        if self.state is not LifecycleState.STARTING:
            return []
        if response.error_code != ErrorCode.NONE:
            return self._retry(_text(response.error_code, response.error_message), now_ms)
        assert response.broker_epoch >= self.broker_epoch, f"epoch went back from {self.broker_epoch}: {response}"
        self.broker_epoch, self._failures = response.broker_epoch, 0
        if self._is_outdated:
            return self._call_now(now_ms)
        self._give_up_ms = None
        return [*self._become(LifecycleState.RECOVERY), *self._call_now(now_ms)]

    def _on_heartbeat_answered(self, response: BrokerHeartbeatResponse, now_ms: int) -> list[LifecycleEffect]:
        self._in_flight = False
        if self.state in (LifecycleState.STARTING, LifecycleState.SHUTTING_DOWN):
            return []
        if response.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            return self._on_unknown_to_controller(response, now_ms)
        if response.error_code != ErrorCode.NONE:
            return self._retry(_text(response.error_code, response.error_message), now_ms)
        self.fenced, self._confirmed_ms = response.is_fenced, None if response.is_fenced else self._beat_ms
        own_ms = self.config.session_timeout_ms
        self._session_ms = min(own_ms, response.session_timeout_ms or own_ms)
        self._unreported.told(self._listed)
        self._failures, self._next_ms = 0, now_ms + self._interval_ms()
        if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            self._silent_ms = now_ms + self.config.controlled_shutdown_silence_ms
            return self._shut_down() if response.should_shutdown else []
        if self.state is LifecycleState.RECOVERY and not response.is_fenced:
            return self._become(LifecycleState.RUNNING)
        return []

    def _on_unknown_to_controller(self, response: BrokerHeartbeatResponse, now_ms: int) -> list[LifecycleEffect]:
        """The registration was replaced or removed: a broker that is stopping just stops, another registers again."""
        if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            return self._shut_down()
        self.fenced, self._confirmed_ms = True, None
        self._last_error = _text(response.error_code, response.error_message)
        self._give_up_ms = now_ms + self.config.registration_timeout_ms
        return [*self._become(LifecycleState.STARTING), *self._call_now(now_ms)]

    def _on_registration_outdated(self, now_ms: int) -> list[LifecycleEffect]:
        """A broker that is stopping does not register any more."""
        if self.state is LifecycleState.STARTING:
            self._is_outdated = self._in_flight
            return []
        if self.state not in (LifecycleState.RECOVERY, LifecycleState.RUNNING):
            return []
        self._give_up_ms = now_ms + self.config.registration_timeout_ms
        return [*self._become(LifecycleState.STARTING), *self._call_now(now_ms)]

    def _on_metadata_applied(self, event: MetadataApplied, now_ms: int) -> list[LifecycleEffect]:
        """The first heartbeat that can unfence this broker is sent at once."""
        wanted_fence = self._wants_fence()
        self.metadata_offset, self.ready = max(self.metadata_offset, event.offset), event.ready
        unfenceable = self.state is LifecycleState.RECOVERY and wanted_fence and not self._wants_fence()
        if unfenceable:
            return self._call_now(now_ms)
        self._end_rest()
        return []

    def _end_rest(self) -> None:
        """The controller learns as soon as usual how far this broker has come: others may wait for it to stop."""
        if self.state is LifecycleState.RUNNING and self._next_ms is not None and not self._in_flight:
            self._next_ms = min(self._next_ms, self._beat_ms + self.config.heartbeat_interval_ms)

    def _on_stop_wanted(self, controlled: bool, now_ms: int) -> list[LifecycleEffect]:
        if self.state is LifecycleState.SHUTTING_DOWN:
            return []
        if controlled and self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            return []
        if not controlled or self.state is not LifecycleState.RUNNING:
            return self._shut_down()
        self._give_up_ms = now_ms + self.config.controlled_shutdown_timeout_ms
        self._silent_ms = now_ms + self.config.controlled_shutdown_silence_ms
        return [*self._become(LifecycleState.PENDING_CONTROLLED_SHUTDOWN), *self._call_now(now_ms)]

    def _shut_down(self) -> list[LifecycleEffect]:
        self._next_ms = self._give_up_ms = self._silent_ms = None
        return self._become(LifecycleState.SHUTTING_DOWN)

    def _become(self, state: LifecycleState) -> list[LifecycleEffect]:
        assert state in NEXT[self.state], f"{self.state} -> {state}"
        self.state = state
        return [StateChanged(state)]

    def _call_now(self, now_ms: int) -> list[LifecycleEffect]:
        if self.state is LifecycleState.SHUTTING_DOWN or self._next_ms is None:
            return []
        self._next_ms = now_ms
        return self._on_timer(now_ms)

    def _retry(self, reason: str, now_ms: int) -> list[LifecycleEffect]:
        self._in_flight, self._last_error = False, reason
        if self._next_ms is not None:
            self._next_ms = now_ms + min(RETRY_MIN_MS << min(self._failures, 10), RETRY_MAX_MS)
        self._failures += 1
        return []

    def _interval_ms(self) -> int:
        """The time to the next heartbeat; 0 if this broker became able to serve while the last one was in flight."""
        if self.state is LifecycleState.RECOVERY and self._asked_fence and not self._wants_fence():
            return 0
        if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            return min(URGENT_INTERVAL_MS, self.config.heartbeat_interval_ms)
        rests = self._rests and self.state is LifecycleState.RUNNING and not self.fenced
        if rests and self.metadata_offset == self._told_offset:
            return self.config.heartbeat_rest_ms
        return self.config.heartbeat_interval_ms

    def _wants_fence(self) -> bool:
        """True until the broker has applied the metadata with its own registration, and can serve."""
        return not self.ready or self.metadata_offset <= self.broker_epoch

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        assert self.broker_epoch >= 0
        self._asked_fence = self._wants_fence()
        self._rests = self.at_rest()
        return BrokerHeartbeatRequest(
            broker_id=self.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self.metadata_offset,
            want_fence=self._asked_fence,
            want_shutdown=self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN,
            offline_directories=self._listed,
            incarnation_id=self.incarnation_id,
            at_rest=self._rests,
            deletions_done_before=self.deletions_done_before(),
            cordoned_directories=self.cordoned_directories(),
            tells_cordoned=self.metadata_offset > self.broker_epoch,
        )


def _text(code: int, message: str) -> str:
    name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
    return f"{name}: {message}" if message else name
