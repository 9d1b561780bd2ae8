"""An event goes through the core; every effect reaches all of its subscribers, in order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from quorumlog.clock import Clock
from quorumlog_broker.partition.events import (
    FollowerFetched,
    HighWatermarkMoved,
    LeadershipLost,
    LogAdvanced,
    PartitionEffect,
    PartitionEvent,
    Tick,
    UnnamedFetch,
    WentOffline,
)
from quorumlog_broker.replicas.replica import Replica
from quorumlog_broker.replicas.stepper import PartitionStepper

KEY = (bytes([7]) * 16, 0)
FETCHED = FollowerFetched(2, 20, 5)


class Core:
    """Returns for each event the effects that it is given."""

    def __init__(self, *effects: list[PartitionEffect]) -> None:
        self.effects = list(effects)
        self.stepped: list[tuple[PartitionEvent, int]] = []
        self.checked = 0

    def step(self, event: PartitionEvent, now_ms: int) -> list[PartitionEffect]:
        self.stepped.append((event, now_ms))
        return self.effects.pop(0)

    def check_invariants(self) -> None:
        self.checked += 1


def replica_of(core: Core) -> Replica:
    return cast(Replica, SimpleNamespace(key=KEY, core=core))


def stepper() -> PartitionStepper:
    return PartitionStepper(cast(Clock, SimpleNamespace(now_ms=lambda: 17)))


def test_effects_are_performed_in_order_by_all_subscribers_in_order() -> None:
    seen: list[Any] = []
    core, subject = Core([LeadershipLost(), HighWatermarkMoved(3), LeadershipLost()]), stepper()
    replica = replica_of(core)
    subject.on(LeadershipLost, lambda of, effect: seen.append(("first", of, effect)))
    subject.on(HighWatermarkMoved, lambda of, effect: seen.append(("moved", of, effect)))
    subject.on(LeadershipLost, lambda of, effect: seen.append(("second", of, effect)))
    subject.on_changed(lambda key: seen.append(("changed", key)))
    subject.step(replica, LogAdvanced(3, 3))
    lost = [("first", replica, LeadershipLost()), ("second", replica, LeadershipLost())]
    assert seen == [("changed", KEY), *lost, ("moved", replica, HighWatermarkMoved(3)), *lost]
    assert core.stepped == [(LogAdvanced(3, 3), 17)] and core.checked == 1


QUIET_CASES: list[tuple[str, PartitionEvent, list[PartitionEffect], bool]] = [
    ("a fetch that changes nothing", FETCHED, [], False),
    ("a fetch that moves the high watermark", FETCHED, [HighWatermarkMoved(5)], True),
    ("an unnamed fetch", UnnamedFetch(2, 20, 5), [], False),
    ("a tick", Tick(), [], False),
    ("an append, though it has no effect", LogAdvanced(1, 1), [], True),
]


@pytest.mark.parametrize(("event", "effects", "want"), [c[1:] for c in QUIET_CASES], ids=[c[0] for c in QUIET_CASES])
def test_what_may_change_the_answer_to_a_fetch(
    event: PartitionEvent, effects: list[PartitionEffect], want: bool
) -> None:
    changed: list[object] = []
    subject = stepper()
    subject.on(HighWatermarkMoved, lambda _replica, _effect: None)
    subject.on_changed(changed.append)
    subject.step(replica_of(Core(effects)), event)
    assert changed == ([KEY] if want else [])


def test_a_subscriber_may_step_again_before_the_next_effect() -> None:
    seen: list[str] = []
    core, subject = Core([LeadershipLost(), WentOffline()], []), stepper()
    replica = replica_of(core)

    def step_again(of: Replica, _effect: LeadershipLost) -> None:
        subject.step(of, Tick())
        seen.append("stepped again")

    subject.on(LeadershipLost, step_again)
    subject.on(WentOffline, lambda _of, _effect: seen.append("went offline"))
    subject.step(replica, LogAdvanced(1, 1))
    assert seen == ["stepped again", "went offline"] and len(core.stepped) == 2


def test_an_effect_without_a_subscriber_is_found_when_the_broker_is_put_together() -> None:
    subject = stepper()
    for effect in get_args(PartitionEffect):
        with pytest.raises(AssertionError, match=effect.__name__):
            subject.check_complete()
        subject.on(effect, lambda _replica, _effect: None)
    subject.check_complete()
