"""What the checks of one log directory have found since the start, for metrics and `quorumlog status`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from quorumlog_storage.checks.segment_check import LogFault

MAX_TOLD = 5  # places of one pass that are events: a broken disk has thousands
MAX_DAMAGE = 100  # places that are remembered of one pass
_NEXT_STEP = (
    "stop the node, check the disk, move the partition's directory out of log.dirs, and start the node: it copies the "
    "partition from its leader; if this is the leader, move the leadership first"
)


class PassCounts(NamedTuple):
    """ended_ms: wall clock; 0 while it is under way."""

    logs: int = 0
    segments: int = 0
    size_bytes: int = 0
    ended_ms: int = 0


class ScrubReport:
    """faults: indexes that were wrong and are mended, since the start. damage: places in the newest pass, by text.

    tell: an event, by its kind, subject and text.
    """

    def __init__(self, path: str, tell: Callable[[str, str, str], None] = lambda _kind, _subject, _text: None) -> None:
        self.path, self._tell = path, tell
        self.passes = self.faults = self.size_bytes = 0
        self.last: PassCounts | None = None  # of the pass that ended last
        self._current = PassCounts()
        self._damage: dict[str, LogFault] = {}  # by place, of the pass under way
        self._damage_before: dict[str, LogFault] = {}  # of the last one

    @property
    def damage(self) -> list[LogFault]:
        """At most MAX_DAMAGE of each of the newest two passes. One that was repaired leaves with the next pass."""
        return list({**self._damage_before, **self._damage}.values())

    @property
    def ended_ms(self) -> int:
        """Wall clock at the end of the last pass; 0: none has ended."""
        return self.last.ended_ms if self.last is not None else 0

    def begin(self) -> None:
        self._current, self._damage = PassCounts(), {}

    def looked_at(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self._current = self._current._replace(size_bytes=self._current.size_bytes + size_bytes)

    def segment(self) -> None:
        self._current = self._current._replace(segments=self._current.segments + 1)

    def log(self) -> None:
        self._current = self._current._replace(logs=self._current.logs + 1)

    def found_damage(self, place: LogFault) -> bool:
        """True if it is new."""
        key = f"{place.path}:{place.position}"
        is_new = key not in self._damage and key not in self._damage_before
        if len(self._damage) < MAX_DAMAGE:
            self._damage[key] = place
        if is_new and len(self._damage) <= MAX_TOLD:
            self._tell("directory.damaged", f"directory/{self.path}", f"a batch is damaged: {place}")
        return is_new

    def ended(self, wall_ms: int) -> None:
        self.passes += 1
        self.last = self._current._replace(ended_ms=wall_ms)
        if self._damage_before and not self._damage:
            self._tell("directory.sound", f"directory/{self.path}", "a whole pass has met no damaged batch any more")
        self._damage_before, self._damage = self._damage, {}

    def problems(self) -> list[str]:
        """A text for each damaged batch, with what to do next."""
        return [f"a batch is damaged: {place}; {_NEXT_STEP}" for place in self.damage]

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.path}: no pass has ended yet"
        ended = datetime.fromtimestamp(self.last.ended_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        what = f"{self.last.logs} logs, {self.last.segments} closed segments, {self.last.size_bytes} bytes"
        return (
            f"{self.path}: pass {self.passes} ended {ended}: {what}; indexes built again since the start: {self.faults}"
        )
