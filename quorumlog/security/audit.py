"""The audit log: who was denied what, and who has changed what, as one JSON object a line in `quorumlog.audit`.

Equal denials of WINDOW_MS are one line with a count, written when the window ends, so that a client that tries again
and again does not fill a disk. What a listing leaves out is no denial.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable

from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.security.required.asker import Change, Denial

WINDOW_MS = 10_000
MAX_WINDOWS = 1_000  # that are open; the oldest one is written early
MAX_NAMES = 100  # of one client, call and right, that have windows of their own; the rest is OTHERS
OTHERS = "(others)"
MAX_NAME_CHARACTERS = 300  # of a name that a client chose

_log = logging.getLogger("quorumlog.audit")


class DenialCounts:
    """Pure: denials and times go in, ended windows come out."""

    def __init__(self) -> None:
        self._open: dict[Denial, tuple[int, int]] = {}  # begin in ms, and how many; in the order of their begins
        self._names: Counter[tuple[object, ...]] = Counter()  # open windows of denials that differ by the name only

    @property
    def next_ms(self) -> int | None:
        """When the oldest window ends."""
        for begin_ms, _ in self._open.values():
            return begin_ms + WINDOW_MS
        return None

    def add(self, denial: Denial, now_ms: int) -> list[tuple[Denial, int]]:
        """Windows that end early to make room, and how many denials each had. A long name is kept as far as it will be
        shown."""
        if len(denial.name) > MAX_NAME_CHARACTERS:
            denial = denial._replace(name=_cut(denial.name))
        if denial not in self._open and self._names[denial[:-1]] >= MAX_NAMES:
            denial = denial._replace(name=OTHERS)
        if denial not in self._open:
            self._names[denial[:-1]] += 1
        begin_ms, count = self._open.get(denial, (now_ms, 0))
        self._open[denial] = (begin_ms, count + 1)
        return [] if len(self._open) <= MAX_WINDOWS else [self._end(next(iter(self._open)))]

    def ended(self, now_ms: int) -> list[tuple[Denial, int]]:
        return [self._end(one) for one, (begin_ms, _) in [*self._open.items()] if begin_ms + WINDOW_MS <= now_ms]

    def all(self) -> list[tuple[Denial, int]]:
        """The node stops."""
        return [self._end(one) for one in [*self._open]]

    def _end(self, denial: Denial) -> tuple[Denial, int]:
        group = denial[:-1]
        self._names[group] -= 1
        if not self._names[group]:
            del self._names[group]
        return denial, self._open.pop(denial)[1]


class AuditLog:
    """Of one node. It needs a running loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts = DenialCounts()
        self._alarm = Alarm(clock, lambda: self._counts.next_ms, self._on_due)

    def denied(self, denial: Denial) -> None:
        _write(self._counts.add(denial, self._clock.now_ms()))
        if not self._alarm.is_set:
            self._alarm.arm()

    def changed(self, change: Change) -> None:
        _log.info("%s", line_of_change(change))

    def close(self) -> None:
        self._alarm.cancel()
        _write(self._counts.all())

    def _on_due(self, now_ms: int, _late_ms: int) -> None:
        _write(self._counts.ended(now_ms))


def _write(denials: Iterable[tuple[Denial, int]]) -> None:
    for denial, count in denials:
        _log.info("%s", line_of(denial, count))


def line_of(denial: Denial, count: int) -> str:
    """ASCII, without line breaks, whatever names hold."""
    return json.dumps(
        {
            "result": "denied",
            "principal": _cut(str(denial.principal)),
            "host": denial.host,
            "listener": denial.listener,
            "api": denial.api,
            "operation": denial.need.operation.name,
            "resource_type": denial.need.resource_type.name,
            "resource": _cut(denial.name),
            "count": count,
        }
    )


def line_of_change(change: Change) -> str:
    """As `line_of`."""
    return json.dumps(
        {
            "result": "failed" if change.errors else "done",
            "principal": _cut(str(change.principal)),
            "host": change.host,
            "listener": change.listener,
            "api": change.api,
            "resources": [_cut(name) for name in change.names],
            "errors": list(change.errors),
        }
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_NAME_CHARACTERS else text[: MAX_NAME_CHARACTERS - 3] + "..."
