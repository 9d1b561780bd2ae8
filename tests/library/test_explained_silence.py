"""How long the reading of facts takes where calls get no answer, as with a lost quorum beside a node that hangs."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.explaining.reading import LOST_MS, at_its_turn, read_facts
from quorumlog_cli.commands.explaining.reading import side_by_side

CALL_MS = 5_000  # the time-out of a call
CALLS = (
    "describe_log_dirs", "list_partition_reassignments", "describe_quorum", "list_groups", "describe_quota_use",
    "describe_events", "describe_topics_configs", "list_offsets", "describe_group", "group_lag",
)  # fmt: skip


class Silent:
    """An admin client by a clock of its own. silent: the calls that time out; others answer at once, with little."""

    def __init__(self, silent: set[str], groups: int = 20) -> None:
        self.now_ms, self.asked = 0, []
        self._silent = silent
        self._groups = [SimpleNamespace(group_id=f"g{at}", group_type="consumer") for at in range(groups)]

    def __getattr__(self, name: str) -> Any:
        part = SimpleNamespace(
            index=0, leader_id=1, leader_epoch=0, replicas=(1,), isr=(1,), eligible_leader_replicas=(),
            last_known_elr=(), leader_recovery_state=0,
        )  # fmt: skip
        answers: dict[str, Any] = {
            "describe_cluster": SimpleNamespace(brokers=()),
            "list_topics": [SimpleNamespace(name="orders", partitions=[part])],
            "describe_quorum": SimpleNamespace(leader_id=1, leader_epoch=1, high_watermark=1, voters=()),
            "list_groups": self._groups,
            "describe_group": SimpleNamespace(group=SimpleNamespace(group_state="Empty", members=()), coordinator=1),
            "group_lag": SimpleNamespace(partitions={}),
        }

        def call(*_args: object, **_options: object) -> Any:
            self.asked.append(name)
            if name in self._silent:
                self.now_ms += CALL_MS
                raise RequestFailed(ErrorCode.REQUEST_TIMED_OUT, name)
            return answers.get(name, {})

        return call


def read(admin: Silent, begin: Callable[[Any], Any] = at_its_turn) -> Any:
    return read_facts(
        admin,  # type: ignore[arg-type]
        wall_ms=lambda: 1_700_000_000_000,
        now_ms=lambda: admin.now_ms,
        sleep_s=lambda _seconds: None,
        begin=begin,
    )


@given(st.sets(st.sampled_from(CALLS)))
def test_a_reading_gives_up_whatever_is_silent(silent: set[str]) -> None:
    """Of the calls that nothing else began, at most one times out after LOST_MS would be spent by another."""
    admin = Silent(silent)
    begun = {"describe_log_dirs", "list_partition_reassignments", "describe_quorum", "list_groups",
             "describe_quota_use", "describe_events"}  # fmt: skip
    facts = read(admin)
    timed_out = [name for name in admin.asked if name in silent]
    assert len([name for name in timed_out if name not in begun]) <= -(-LOST_MS // CALL_MS)
    assert len(timed_out) == len(set(timed_out)), "none is waited for twice"
    assert facts.unreachable == "" and facts.partitions[0].topic == "orders"


def test_what_was_not_asked_is_not_known_and_no_trouble() -> None:
    facts = read(Silent({"describe_topics_configs"}))
    assert "RequestFailed" in facts.unknown["settings of topics"]
    assert facts.unknown["ends of partitions"] == "not asked: others gave no answer in 5 s"
    assert "not all were asked for: g0" in facts.unknown["groups"] and facts.groups == ()
    assert facts.quorum is not None, "this one was begun before"


def test_a_healthy_cluster_is_asked_for_everything_however_long_it_takes() -> None:
    admin = Silent(set())
    facts = read(admin)
    assert len(facts.groups) == 20 and set(facts.unknown) == {"events"}
    assert set(admin.asked) >= {*CALLS}


def test_calls_run_side_by_side_and_keep_their_errors() -> None:
    """Each waits for the other: one after the other neither would end."""
    both = Barrier(2, timeout=30)

    def fails() -> None:
        both.wait()
        raise RequestFailed(ErrorCode.REQUEST_TIMED_OUT, "x")

    first, second = side_by_side(both.wait), side_by_side(fails)
    assert first() in (0, 1)
    with pytest.raises(RequestFailed, match="x"):
        second()
