"""A run ends at the next strike, although the exception of its interrupt was dropped."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest

from jepsen.live import interrupt

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Iterator[None]:
    before = [signal.getsignal(number) for number in NUMBERS]
    yield
    for number, handler in zip(NUMBERS, before, strict=True):
        signal.signal(number, handler)


class Interrupted:
    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize("number", NUMBERS)
def test_what_a_destructor_drops_is_found_at_the_next_look(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: dropped.append(told.exc_type))
    interrupt.listen()
    interrupt.look()
    held = Interrupted(number)
    del held
    assert dropped == [KeyboardInterrupt]
    with pytest.raises(KeyboardInterrupt):
        interrupt.look()
    interrupt.look()


def test_an_interrupt_is_raised_at_once_where_nothing_drops_it() -> None:
    interrupt.listen()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
