"""Places at which a batch can be held, and the files by which the run, Spark's processes and the nodes tell each other.

The run makes `hold-PLACE`. Whoever comes to the place takes it (it is renamed to `at-PLACE`, so that one comes only),
and waits until the run removes that file. Everybody has the same folder.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

POLL_S = 0.02
HELD_S = 120.0  # at most: a process that nobody releases goes on by itself
CHECKPOINT = "checkpoint"  # Spark's
EVENTS = "events"  # a line of JSON for each
RAISES_BEFORE, RAISES_AFTER = "raise-before", "raise-after"  # the next commit raises, before or behind the decision
BOTH = "both"  # the next commit and an abort of the same batch run at once
STOP, PAUSE, RESUME, FINISH = "stop", "pause", "resume", "finish"  # what the driver's script is told


class Place(Enum):
    FIRST_SEND = "first-send"  # a task has begun its attempt, and sends its first row next
    RETURNS = "returns"  # a task has sent its rows, and has not returned
    COMMIT = "commit"  # the driver is about to decide
    RECORD = "record"  # the coordinator's record of the decision is committed, and nothing behind it is written
    MARKERS = "markers"  # the children are prepared, and no marker is sent
    AFTER = "after"  # the driver has its answer, and has not told Spark


IN_TASKS = (Place.FIRST_SEND, Place.RETURNS)
IN_NODES = (Place.RECORD, Place.MARKERS)


class Folder:
    """Of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: list[dict[str, Any]] = []
        self._seen = 0  # bytes of the file, whole lines

    # --- of the run ---

    def hold(self, place: Place) -> None:
        """The next one who comes to it."""
        self.release(place)
        self._held(place).touch()

    def is_reached(self, place: Place) -> bool:
        return self._reached(place).exists()

    def release(self, place: Place) -> None:
        self._held(place).unlink(missing_ok=True)
        self._reached(place).unlink(missing_ok=True)

    def order(self, name: str) -> None:
        (self.path / name).touch()

    def events(self) -> list[dict[str, Any]]:
        """All so far. A call reads what has come since the one before."""
        try:
            with (self.path / EVENTS).open("rb") as file:
                file.seek(self._seen)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._seen += len(whole) + len(end)
        self._events += [json.loads(line) for line in whole.splitlines()]
        return self._events

    # --- of the others ---

    def has(self, name: str) -> bool:
        """An order that nobody has taken."""
        return (self.path / name).exists()

    def take(self, name: str) -> bool:
        """An order, once."""
        try:
            (self.path / name).unlink()
        except FileNotFoundError:
            return False
        return True

    def is_held(self, place: Place) -> bool:
        """Nobody has come to it yet."""
        return self._held(place).exists()

    def comes_to(self, place: Place) -> bool:
        """True: it has to wait there until `is_left`."""
        try:
            self._held(place).rename(self._reached(place))
        except FileNotFoundError:
            return False
        return True

    def is_left(self, place: Place) -> bool:
        return not self._reached(place).exists()

    def wait_at(self, place: Place) -> None:
        """Where the run holds this place: until it is released."""
        if self.comes_to(place):
            deadline = time.monotonic() + HELD_S
            while not self.is_left(place) and time.monotonic() < deadline:
                time.sleep(POLL_S)  # the release is a file

    def tell(self, event: Mapping[str, Any]) -> None:
        """One write of one line, so that processes may tell at once, and a killed one leaves no half of it."""
        line = json.dumps(event).encode() + b"\n"
        file = os.open(self.path / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def _held(self, place: Place) -> Path:
        return self.path / f"hold-{place.value}"

    def _reached(self, place: Place) -> Path:
        return self.path / f"at-{place.value}"
