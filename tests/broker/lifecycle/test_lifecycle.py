"""The lifecycle of a broker: what it sends, when, and what each response does."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse, RegisterBrokerResponse
from quorumlog.settings.lifecycle import LifecycleConfig
from quorumlog_broker.lifecycle.lifecycle import (
    NEXT,
    RETRY_MAX_MS,
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
from tests.rules import rule

S = LifecycleState
INCARNATION = bytes(range(16))
FENCED = HeartbeatAnswered(BrokerHeartbeatResponse(is_fenced=True))
UNFENCED = HeartbeatAnswered(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
STALE = HeartbeatAnswered(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
BUSY = HeartbeatAnswered(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
GO_DOWN = HeartbeatAnswered(BrokerHeartbeatResponse(should_shutdown=True))


def make(offline: Iterable[bytes] = ()) -> Lifecycle:
    config = LifecycleConfig()
    return Lifecycle(node_id=1, incarnation_id=INCARNATION, config=config, offline_directories=lambda: offline)


def registered(epoch: int = 10) -> Registered:
    return Registered(RegisterBrokerResponse(broker_epoch=epoch))


def play(core: Lifecycle, *events: LifecycleEvent, now_ms: int = 0) -> list[LifecycleEffect]:
    """The effects of the last event."""
    effects: list[LifecycleEffect] = []
    for event in events:
        effects = core.step(event, now_ms)
        core.check_invariants()
    return effects


def running(offline: Iterable[bytes] = ()) -> Lifecycle:
    core = make(offline)
    play(core, TimerFired(), registered(), FENCED, MetadataApplied(11, ready=True), UNFENCED)
    assert core.state is S.RUNNING
    return core


def sent(effects: list[LifecycleEffect]) -> BrokerHeartbeatRequest:
    (request,) = [effect.request for effect in effects if isinstance(effect, SendHeartbeat)]
    return request


def test_damage_that_is_found_after_the_registration_is_told_with_another_one() -> None:
    core = make()
    play(core, TimerFired(), registered())
    assert play(core, RegistrationOutdated()) == [StateChanged(S.STARTING)]
    assert play(core, FENCED, TimerFired()) == [Register()], "the heartbeat that was in flight is over"
    effects = play(core, registered())
    assert effects[0] == StateChanged(S.RECOVERY) and sent(effects).want_fence


def test_a_registration_that_is_outdated_in_flight_is_followed_by_another_one() -> None:
    core = make()
    assert play(core, TimerFired()) == [Register()]
    assert play(core, RegistrationOutdated()) == []
    assert play(core, registered()) == [Register()]
    assert core.state is S.STARTING
    assert play(core, registered())[0] == StateChanged(S.RECOVERY)


def test_an_outdated_registration_that_fails_is_repeated_once() -> None:
    core = make()
    play(core, TimerFired(), RegistrationOutdated(), CallFailed("lost"))
    assert play(core, TimerFired(), now_ms=1_000) == [Register()]
    assert play(core, registered())[0] == StateChanged(S.RECOVERY)


def test_a_broker_that_stops_does_not_register_again() -> None:
    core = running()
    play(core, StopWanted(controlled=True))
    assert play(core, RegistrationOutdated()) == []
    assert core.state is S.PENDING_CONTROLLED_SHUTDOWN


def test_the_way_to_running() -> None:
    core = make()
    assert play(core, TimerFired()) == [Register()]
    effects = play(core, registered(epoch=10))
    assert effects[0] == StateChanged(S.RECOVERY)
    assert sent(effects).want_fence
    assert play(core, FENCED) == []
    assert sent(play(core, MetadataApplied(11, ready=True))).want_fence is False
    assert play(core, UNFENCED) == [StateChanged(S.RUNNING)]
    assert not core.fenced


CATCHING_UP = [
    ("has not applied its own registration", 10, True, True),
    ("has, but its logs are not open", 11, False, True),
    ("both", 11, True, False),
]


@pytest.mark.parametrize(
    ("offset", "ready", "want_fence"), [case[1:] for case in CATCHING_UP], ids=[case[0] for case in CATCHING_UP]
)
def test_it_wants_to_be_unfenced_once_it_can_serve(offset: int, ready: bool, want_fence: bool) -> None:
    core = make()
    play(core, TimerFired(), registered(epoch=10), FENCED, MetadataApplied(offset, ready=ready))
    core._in_flight = False
    request = sent(play(core, TimerFired(), now_ms=500))
    assert request.want_fence is want_fence
    assert request.current_metadata_offset == offset
    assert request.incarnation_id == INCARNATION


def test_what_changes_while_a_heartbeat_is_in_flight_is_sent_right_after() -> None:
    core = make()
    play(core, TimerFired(), registered(epoch=10), MetadataApplied(11, ready=True), FENCED)
    assert sent(play(core, TimerFired())).want_fence is False


def test_heartbeats_go_out_every_interval_and_one_at_a_time() -> None:
    core = running()
    assert core.deadline_ms() == 500
    assert play(core, TimerFired(), now_ms=499) == []
    assert sent(play(core, TimerFired(), now_ms=500))
    assert play(core, TimerFired(), now_ms=1_500) == []
    assert core.deadline_ms() is None


def resting(at_rest: bool = True) -> Lifecycle:
    """A broker that has sent its first heartbeat at rest at 1,000 ms, and has the answer."""
    core = running()
    core.config = LifecycleConfig(heartbeat_interval_ms=500, heartbeat_rest_ms=1_000)
    core.at_rest = lambda: at_rest
    assert sent(play(core, TimerFired(), now_ms=1_000)).at_rest is at_rest
    play(core, UNFENCED, now_ms=1_000)
    return core


def test_a_broker_at_rest_beats_more_slowly_until_something_is_written_to_it() -> None:
    assert resting().deadline_ms() == 2_000
    assert resting(at_rest=False).deadline_ms() == 1_500


@pytest.mark.parametrize("answer", [FENCED, BUSY])
def test_a_broker_that_is_not_served_does_not_rest(answer: HeartbeatAnswered) -> None:
    core = resting()
    play(core, TimerFired(), answer, now_ms=2_000)
    due_ms = core.deadline_ms()
    assert due_ms is not None and due_ms <= 2_500


def test_news_of_the_metadata_end_the_rest() -> None:
    core = resting()
    play(core, MetadataApplied(12, ready=True), now_ms=1_200)
    assert core.deadline_ms() == 1_500
    assert sent(play(core, TimerFired(), now_ms=1_500)).current_metadata_offset == 12


def test_a_wrongly_fenced_broker_is_unfenced_by_its_next_heartbeat() -> None:
    core = running()
    play(core, TimerFired(), now_ms=500)
    play(core, FENCED, now_ms=500)
    assert core.fenced
    assert core.state is S.RUNNING
    assert sent(play(core, TimerFired(), now_ms=1_000)).want_fence is False


def test_a_new_controller_is_called_at_once_even_if_the_old_one_has_not_answered() -> None:
    core = running()
    play(core, TimerFired(), now_ms=500)
    assert sent(play(core, ControllerChanged(), now_ms=510))


def test_failures_are_retried_with_growing_waits() -> None:
    core, waits, now_ms = make(), [], 0
    for _ in range(8):
        assert play(core, TimerFired(), now_ms=now_ms) == [Register()]
        play(core, CallFailed("refused"), now_ms=now_ms)
        deadline_ms = core.deadline_ms()
        assert deadline_ms is not None
        waits.append(deadline_ms - now_ms)
        now_ms = deadline_ms
    assert waits == sorted(waits)
    assert waits[-1] == RETRY_MAX_MS


def test_a_registration_refused_for_too_long_is_fatal_and_says_why() -> None:
    core = make()
    refusal = RegisterBrokerResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION, error_message="another lives")
    play(core, TimerFired(), Registered(refusal))
    (fatal,) = play(core, TimerFired(), now_ms=60_000)
    assert isinstance(fatal, Fatal)
    assert "DUPLICATE_BROKER_REGISTRATION: another lives" in fatal.reason
    assert core.deadline_ms() is None


def test_a_broker_that_the_controller_does_not_know_registers_again() -> None:
    core = running()
    play(core, TimerFired(), now_ms=500)
    assert play(core, STALE, now_ms=500) == [StateChanged(S.STARTING), Register()]
    assert core.fenced
    play(core, registered(epoch=20), now_ms=500)
    assert core.broker_epoch == 20


def test_it_is_in_service_for_a_session_from_the_last_heartbeat_that_was_answered() -> None:
    core, session_ms = running(), LifecycleConfig().session_timeout_ms
    assert core.is_in_service(session_ms - 1) and not core.is_in_service(session_ms)
    play(core, TimerFired(), now_ms=600)  # and the answer takes its time
    assert not core.is_in_service(session_ms)
    play(core, UNFENCED, now_ms=900)
    assert core.is_in_service(600 + session_ms - 1) and not core.is_in_service(600 + session_ms)


@pytest.mark.parametrize(("theirs_ms", "want_ms"), [(0, 9_000), (4_000, 4_000), (20_000, 9_000)])
def test_a_session_is_no_longer_than_the_controller_counts_it(theirs_ms: int, want_ms: int) -> None:
    core = running()
    answer = HeartbeatAnswered(BrokerHeartbeatResponse(is_fenced=False, session_timeout_ms=theirs_ms))
    play(core, TimerFired(), answer, now_ms=600)
    assert core.is_in_service(600 + want_ms - 1) and not core.is_in_service(600 + want_ms)


@pytest.mark.parametrize(
    "event", [FENCED, STALE, RegistrationOutdated(), StopWanted(True)], ids=["fenced", "stale", "outdated", "stops"]
)
def test_it_is_not_in_service(event: LifecycleEvent) -> None:
    core = running()
    play(core, TimerFired(), event, now_ms=600)
    assert not core.is_in_service(600)


@pytest.mark.parametrize("event", [BUSY, CallFailed("broken"), ControllerChanged()], ids=["busy", "failed", "changed"])
def test_what_says_nothing_about_its_service_changes_nothing(event: LifecycleEvent) -> None:
    core = running()
    play(core, TimerFired(), event, now_ms=600)
    assert core.is_in_service(LifecycleConfig().session_timeout_ms - 1)
    assert not core.is_in_service(LifecycleConfig().session_timeout_ms)


@rule("kraft 10.5", "storage 7.9")
def test_offline_directories_are_sent_at_once_and_in_every_heartbeat() -> None:
    offline = [b"b" * 16]
    core = running(offline)
    assert sent(play(core, DirectoriesChanged(), now_ms=1)).offline_directories == (b"b" * 16,)
    play(core, UNFENCED, now_ms=1)
    offline.append(b"a" * 16)
    request = sent(play(core, DirectoriesChanged(), now_ms=2))
    assert request.offline_directories == (b"a" * 16, b"b" * 16)
    play(core, CallFailed("lost"), now_ms=2)
    assert sent(play(core, TimerFired(), now_ms=500)).offline_directories == (b"a" * 16, b"b" * 16)


@rule("kraft 10.11")
def test_cordoned_directories_are_told_once_the_metadata_is_known_that_may_change_them() -> None:
    core = make()
    core.cordoned_directories = lambda: (b"c" * 16,)
    first = sent(play(core, TimerFired(), registered()))
    assert not first.tells_cordoned, "the metadata may say something else than the file"
    assert sent(play(core, FENCED, MetadataApplied(11, ready=True), now_ms=1)).tells_cordoned
    play(core, UNFENCED, now_ms=1)
    core.cordoned_directories = lambda: (b"c" * 16, b"d" * 16)
    request = sent(play(core, DirectoriesChanged(), now_ms=2))
    assert request.tells_cordoned and request.cordoned_directories == (b"c" * 16, b"d" * 16)


def test_a_directory_that_came_back_is_not_sent_any_more() -> None:
    offline = [b"a" * 16, b"b" * 16]
    core = running(offline)
    play(core, DirectoriesChanged(), now_ms=1)
    play(core, UNFENCED, now_ms=1)
    offline.remove(b"a" * 16)
    assert sent(play(core, DirectoriesChanged(), now_ms=2)).offline_directories == (b"b" * 16,)


@rule("storage 7.9")
def test_a_broker_stops_where_the_controller_does_not_learn_of_a_failed_directory() -> None:
    offline = [b"a" * 16]
    core = running()
    core.offline_directories = lambda: offline
    play(core, DirectoriesChanged(), now_ms=1_000)
    limit_ms = 1_000 + core.config.directory_failure_timeout_ms
    play(core, CallFailed("lost"), now_ms=1_001)
    play(core, ControllerChanged(), now_ms=limit_ms - 1)
    assert core.state is S.RUNNING and core.deadline_ms() == limit_ms, "a call that gets no answer tells nothing"
    (effect,) = play(core, TimerFired(), now_ms=limit_ms)
    assert isinstance(effect, Fatal) and "log.dir.failure.timeout.ms (30000)" in effect.reason
    assert core.deadline_ms() is None and play(core, TimerFired(), now_ms=limit_ms + 1) == []


def test_the_time_to_tell_of_a_directory_ends_with_the_answer_or_its_return() -> None:
    offline = [b"a" * 16]
    core = running()
    core.offline_directories = lambda: offline
    play(core, DirectoriesChanged(), UNFENCED, now_ms=1_000)
    assert core.deadline_ms() == 1_500, "told: only the next heartbeat is due"
    offline.append(b"b" * 16)
    play(core, DirectoriesChanged(), CallFailed("lost"), now_ms=2_000)
    offline.remove(b"b" * 16)
    play(core, DirectoriesChanged(), UNFENCED, now_ms=3_000)
    offline.append(b"b" * 16)
    play(core, DirectoriesChanged(), now_ms=9_000)
    assert core.deadline_ms() == 9_000 + core.config.directory_failure_timeout_ms, "a new failure has all its time"


def test_a_controlled_stop_waits_for_the_controllers_consent() -> None:
    core = running()
    effects = play(core, StopWanted(controlled=True))
    assert effects[0] == StateChanged(S.PENDING_CONTROLLED_SHUTDOWN)
    assert sent(effects).want_shutdown
    assert play(core, UNFENCED) == []
    assert play(core, StopWanted(controlled=True)) == []
    play(core, TimerFired(), now_ms=500)
    assert play(core, GO_DOWN, now_ms=500) == [StateChanged(S.SHUTTING_DOWN)]
    assert core.deadline_ms() is None


def test_a_controlled_stop_ends_at_its_time_out_or_by_a_second_stop() -> None:
    core = running()
    play(core, StopWanted(controlled=True))
    for now_ms in range(500, 20_000, 500):
        play(core, UNFENCED, now_ms=now_ms)
        play(core, TimerFired(), now_ms=now_ms)
        assert core.state is S.PENDING_CONTROLLED_SHUTDOWN
    assert play(core, TimerFired(), now_ms=20_000) == [StateChanged(S.SHUTTING_DOWN)]
    core = running()
    play(core, StopWanted(controlled=True))
    assert play(core, StopWanted(controlled=False)) == [StateChanged(S.SHUTTING_DOWN)]


def test_a_controlled_stop_does_not_wait_for_a_controller_that_is_silent() -> None:
    core = running()
    play(core, StopWanted(controlled=True))
    assert core.deadline_ms() == 2_000
    assert play(core, TimerFired(), now_ms=2_000) == [StateChanged(S.SHUTTING_DOWN)]


@pytest.mark.parametrize("controlled", [True, False])
def test_nothing_is_handed_over_before_it_runs(controlled: bool) -> None:
    core = make()
    play(core, TimerFired())
    assert play(core, StopWanted(controlled)) == [StateChanged(S.SHUTTING_DOWN)]
    assert play(core, registered()) == []


def test_no_state_follows_the_last() -> None:
    assert NEXT[S.SHUTTING_DOWN] == frozenset()
    assert set(NEXT) == set(S)


EVENTS = st.sampled_from(
    [
        TimerFired(),
        ControllerChanged(),
        registered(10),
        FENCED,
        UNFENCED,
        STALE,
        BUSY,
        GO_DOWN,
        CallFailed("broken"),
        MetadataApplied(5, ready=True),
        MetadataApplied(11, ready=True),
        DirectoriesChanged(),
        StopWanted(True),
        StopWanted(False),
    ]
)


@given(st.lists(st.tuples(EVENTS, st.integers(0, 800)), max_size=60))
def test_any_sequence_keeps_the_rules(steps: list[tuple[LifecycleEvent, int]]) -> None:
    """Nothing is sent after the end; unfencing is not requested before the own registration is applied."""
    core, now_ms, ended = make(), 0, False
    for event, passed_ms in steps:
        now_ms += passed_ms
        effects = core.step(event, now_ms)
        core.check_invariants()
        assert not (ended and effects)
        for effect in effects:
            if isinstance(effect, SendHeartbeat) and not effect.request.want_fence:
                assert effect.request.current_metadata_offset > effect.request.broker_epoch
        ended = ended or core.state is S.SHUTTING_DOWN or any(isinstance(effect, Fatal) for effect in effects)
