"""The order of interleaved rounds, and when a warm-up has ended."""

from __future__ import annotations

import pytest

from bench.measuring.rounds import in_turn, not_settled


def test_every_other_round_goes_backwards() -> None:
    assert in_turn(["a", "b", "c"], 2) == [(0, "a"), (1, "b"), (2, "c")]
    assert in_turn(["a", "b", "c"], 3) == [(2, "c"), (1, "b"), (0, "a")]


CASES = [
    ("nothing yet", [], "0 of at least 2 rounds"),
    ("one round shows nothing", [10.0], "1 of at least 2 rounds"),
    ("still falling", [300.0, 210.0, 125.0], "rounds 2 and 3 differ by 40 %"),
    ("settled, then disturbed", [100.0, 100.0, 120.0], "rounds 2 and 3 differ by 20 %"),
    ("ten percent is too much", [100.0, 110.0], "rounds 1 and 2 differ by 10 %"),
    ("settled", [300.0, 100.0, 109.0], ""),
    ("settled while falling", [300.0, 100.0, 91.0], ""),
]


@pytest.mark.parametrize(("rounds", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_two_rounds_in_a_row_that_are_alike_end_a_warm_up(rounds: list[float], want: str) -> None:
    assert not_settled(rounds) == want
