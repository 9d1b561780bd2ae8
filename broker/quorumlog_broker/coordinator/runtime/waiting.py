"""Requests that wait a moment for something that is about to happen on this broker."""

from __future__ import annotations

import asyncio

from quorumlog.turn import Signal, Turn


class Waiting:
    """Whoever waits is woken by the next `wake`, or at its time-out, and looks again."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._timers: dict[Signal, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def until_woken(self, timeout_ms: int) -> Signal:
        signal = Signal()
        timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, self._end, signal)
        self._timers[signal] = timer
        return signal

    def wake(self) -> None:
        timers, self._timers = self._timers, {}
        for signal, timer in timers.items():
            timer.cancel()
            signal.fire(self._turn)

    def _end(self, signal: Signal) -> None:
        self._timers.pop(signal, None)
        signal.fire(self._turn)
