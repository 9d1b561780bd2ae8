"""When NoOp records are due: less often at rest, and as usual as soon as anything happens."""

from __future__ import annotations

from quorumlog.idle_backoff import IdleBackoff
from quorumlog_quorum.controller.idle import Idle


def at_rest() -> Idle:
    """It has written NoOps until the interval reached its limit, the last one at 10,000 ms."""
    idle = Idle(IdleBackoff(500, 5_000))
    for _ in range(10):
        idle.on_no_op(10_000)
    assert idle.deadline_ms() == 15_000
    return idle


def test_another_record_ends_the_rest() -> None:
    idle = at_rest()
    idle.on_append(11_000)
    assert idle.deadline_ms() == 11_500


def test_a_broker_to_which_something_is_written_ends_the_rest() -> None:
    idle = at_rest()
    assert idle.end_rest() and idle.deadline_ms() == 10_500
    assert not idle.end_rest(), "the deadline is as near as it can be"


def test_without_an_interval_there_are_none() -> None:
    assert Idle(IdleBackoff(0, 0)).deadline_ms() is None
