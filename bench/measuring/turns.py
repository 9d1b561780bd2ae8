"""What the long turns of an event loop did: the callback that used most of each, and the garbage collection in it.

The callbacks of the whole process are timed by the thread's clock, less than a microsecond each; so only a benchmark's
process does this. A task's step is named by its coroutine and by where that waits afterwards.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from selectors import BaseSelector
from typing import Any, NamedTuple

LONG_MS = 10.0  # turns from here on are named
MAX_LONG = 2_000  # of one process; later ones are only counted
MAX_DEPTH = 4  # of coroutines, and of callbacks inside of callbacks


class LongTurn(NamedTuple):
    """callback: the one that used most of the turn, for which callback_ms. collection_ms: of the whole turn."""

    ended_s: float  # of time.monotonic
    used_ms: float
    callback_ms: float
    collection_ms: float
    callback: str

    def __str__(self) -> str:
        return (
            f"{self.used_ms:.1f} ms: {self.callback} {self.callback_ms:.1f} ms, collection {self.collection_ms:.1f} ms"
        )


class LongTurns:
    """Of the one loop of this process. Made once; it stays in force until the process ends."""

    def __init__(self) -> None:
        self.found: list[LongTurn] = []
        self._longest_ns = self._collected_ns = self._collection_began_ns = 0
        self._what: tuple[Any, Sequence[Any]] = (None, ())
        self._time_callbacks()
        gc.callbacks.append(self._on_collection)

    def begin(self) -> None:
        self._longest_ns, self._collected_ns, self._what = 0, 0, (None, ())

    def end(self, ended_s: float, used_ns: int) -> None:
        if used_ns < LONG_MS * 1e6 or len(self.found) >= MAX_LONG:
            return
        name = name_of(*self._what)
        self.found.append(LongTurn(ended_s, used_ns / 1e6, self._longest_ns / 1e6, self._collected_ns / 1e6, name))

    def _time_callbacks(self) -> None:
        run: Callable[[asyncio.Handle], None] = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            what = handle._callback, handle._args  # type: ignore[attr-defined]  # they are dropped by a cancellation
            before_ns = time.thread_time_ns()
            run(handle)
            used_ns = time.thread_time_ns() - before_ns
            if used_ns > self._longest_ns:
                self._longest_ns, self._what = used_ns, what

        asyncio.Handle._run = timed  # type: ignore[assignment, method-assign]

    def _on_collection(self, phase: str, _: object) -> None:
        now_ns = time.thread_time_ns()
        if phase == "start":
            self._collection_began_ns = now_ns
        else:
            self._collected_ns += now_ns - self._collection_began_ns


def name_of(callback: Any, arguments: Sequence[Any], depth: int = MAX_DEPTH) -> str:
    """A callback for people, with the callbacks that it was given, and the lengths of lists."""
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return name_of_coroutine(task.get_coro())
    if isinstance(callback, partial):
        callback, arguments = callback.func, (*callback.args, *arguments)
    name = getattr(callback, "__qualname__", type(callback).__qualname__)
    inner = [
        name_of(one, (), depth - 1) if callable(one) else f"{len(one)} items"
        for one in arguments
        if depth > 1 and (callable(one) or isinstance(one, list | tuple | dict))
    ]
    return f"{name}({', '.join(inner)})"


def name_of_coroutine(coroutine: Any) -> str:
    names = []
    for _ in range(MAX_DEPTH):
        frame = getattr(coroutine, "cr_frame", None)
        names.append(coroutine.__qualname__ + (f":{frame.f_lineno}" if frame is not None else ""))
        coroutine = getattr(coroutine, "cr_await", None)
        if not hasattr(coroutine, "cr_frame"):
            break
    return " > ".join(names)


def write_long_turns(turns: LongTurns, file: Path) -> None:
    file.write_text(json.dumps(turns.found))


def read_long_turns(file: Path, start_s: float, end_s: float) -> list[LongTurn]:
    """Those that ended between two times of `time.monotonic`, the longest first."""
    found = [LongTurn(*one) for one in json.loads(file.read_text())]
    return sorted((one for one in found if start_s <= one.ended_s <= end_s + 1), key=lambda one: -one.used_ms)


STEP_US = 100  # lengths are rounded down to this


class MeasuredLoop(asyncio.SelectorEventLoop):
    """turns: how many ended in which second with which length; key: (second, length in STEP_US).

    long: names the long ones, if somebody sets it.
    """

    def __init__(self, selector: BaseSelector | None = None) -> None:
        super().__init__(selector)
        self.turns: Counter[tuple[int, int]] = Counter()
        self.long: LongTurns | None = None

    def _run_once(self) -> None:
        """Called by asyncio for each turn."""
        if self.long is not None:
            self.long.begin()
        before_ns = time.thread_time_ns()
        super()._run_once()  # type: ignore[misc]  # a private method, not in the stubs
        used_ns = time.thread_time_ns() - before_ns
        self.turns[int(self.time()), used_ns // 1_000 // STEP_US] += 1
        if self.long is not None:
            self.long.end(self.time(), used_ns)


@dataclass(frozen=True, slots=True)
class Turns:
    """Of one span of time. lengths_ms: how many turns had which length."""

    lengths_ms: Mapping[float, int]

    @property
    def longest_ms(self) -> float:
        return max(self.lengths_ms, default=0.0)

    def percentile_ms(self, share: float) -> float:
        """The shortest length that `share` (0 to 1) of the turns do not exceed."""
        total, seen = sum(self.lengths_ms.values()), 0
        for length_ms in sorted(self.lengths_ms):
            seen += self.lengths_ms[length_ms]
            if seen >= share * total:
                return length_ms
        return 0.0


def write_turns(turns: Mapping[tuple[int, int], int], file: Path) -> None:
    file.write_text(json.dumps([[second, length, count] for (second, length), count in turns.items()]))


def read_turns(file: Path, start_s: float, end_s: float) -> Turns:
    """The turns that ended between two times of `time.monotonic`, to the second, both included."""
    lengths: Counter[float] = Counter()
    for second, length, count in json.loads(file.read_text()):
        if int(start_s) <= second <= int(end_s):
            lengths[(length + 1) * STEP_US / 1_000] += count
    return Turns(lengths)
