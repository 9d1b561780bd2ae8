"""The pause of compaction: renewed in time, never believed once it has ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.backup.compaction_pause import LEAST_PAUSE_MS, PAUSE_MS, RENEW_MS, CompactionPause, PauseEnded

NOW = 1_700_000_000_000


def test_it_is_renewed_each_minute() -> None:
    pause = CompactionPause()
    assert pause.due(NOW) == NOW + PAUSE_MS
    assert pause.due(NOW) == NOW + PAUSE_MS, "it was not acknowledged"
    pause.renewed(NOW + PAUSE_MS)
    assert pause.due(NOW + RENEW_MS) is None
    assert pause.due(NOW + RENEW_MS + 1) == NOW + RENEW_MS + 1 + PAUSE_MS


def test_one_that_has_ended_is_not_gone_on_with() -> None:
    pause = CompactionPause()
    pause.renewed(NOW + PAUSE_MS)
    assert pause.due(NOW + PAUSE_MS - 1) is not None
    with pytest.raises(PauseEnded, match="Begin another backup, in an empty folder"):
        pause.due(NOW + PAUSE_MS)


@given(st.lists(st.tuples(st.integers(0, PAUSE_MS), st.booleans()), max_size=30))
def test_no_gap_passes(steps: list[tuple[int, bool]]) -> None:
    """Whatever renewals get lost: where none is told, brokers paused all the time."""
    pause, now, paused_until = CompactionPause(), NOW, None
    for passed_ms, is_acknowledged in steps:
        now += passed_ms
        try:
            until = pause.due(now)
        except PauseEnded:
            assert paused_until is not None and now >= paused_until
            return
        assert paused_until is None or now < paused_until
        if until is not None and is_acknowledged:
            paused_until = until
            pause.renewed(until)
        elif until is None:
            assert paused_until is not None and paused_until - now > LEAST_PAUSE_MS
