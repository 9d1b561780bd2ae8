"""Processor time as the kernel counts it."""

from __future__ import annotations

import os
import time

from bench.measuring.processor_time import MAIN, Spent, parse_stat, spent_by, spent_by_threads


def test_a_process_name_may_hold_spaces_and_parentheses() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    text = f"17 (a (b) c) S 1 17 17 0 -1 4194560 900 0 0 0 {3 * ticks} {2 * ticks} 700 900 20 0 15 0 62403 0 0\n"
    assert parse_stat(text) == Spent(user_s=3.0, system_s=2.0)


def test_this_process_is_seen_to_work() -> None:
    before, until_s = spent_by([os.getpid()]), time.process_time() + 0.1
    while time.process_time() < until_s:
        pass
    used = spent_by([os.getpid()]).since(before)
    assert 0.05 < used.total_s < 5
    assert spent_by_threads([os.getpid()])[MAIN].total_s > 0.05


def test_the_time_of_several_processes_is_added() -> None:
    once = spent_by([os.getpid()])
    twice = spent_by([os.getpid(), os.getpid()])
    assert once.user_s * 2 <= twice.user_s <= once.user_s * 2 + 0.5
