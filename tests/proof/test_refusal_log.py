"""Refusals are logged for each peer, and seldom."""

from __future__ import annotations

from quorumlog.proof.refusal_log import MAX_PEERS, PERIOD_S, RefusalLog


def test_one_line_for_each_peer_and_period() -> None:
    log = RefusalLog()
    assert [log.due("a", now_s) for now_s in (0, 1, 2, PERIOD_S - 1)] == [0, None, None, None]
    assert log.due("b", 3) == 0
    assert log.due("a", PERIOD_S) == 3, "it names those that were left out"
    assert log.due("a", PERIOD_S + 1) is None


def test_it_remembers_a_limited_number_of_peers() -> None:
    log = RefusalLog()
    for number in range(10 * MAX_PEERS):
        assert log.due(str(number), 0) == 0
    assert len(log._logged) == MAX_PEERS
