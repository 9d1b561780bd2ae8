"""The places of numbers, counts, lengths and tags in a message, so that a fuzz test can damage them and nothing else.

A `Survey` is a cursor that notes what it is asked for; the message is read by the schemas that production uses.
"""

from __future__ import annotations

import re
import sys
from enum import Enum, auto
from functools import cached_property
from struct import calcsize
from typing import NamedTuple

from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.schema import Run, Shape


class Kind(Enum):
    """NUMBER: of fixed width, or several of them in an array. VARINT: of tags, or of a compact null or empty value."""

    NUMBER = auto()
    COUNT = auto()
    LENGTH = auto()
    CONTENT = auto()
    VARINT = auto()


class Place(NamedTuple):
    """start, size: bytes. compact: the number there is an unsigned varint."""

    kind: Kind
    start: int
    size: int
    compact: bool


class Body:
    """An intact message without its header. shape: its schema."""

    def __init__(self, data: bytes, shape: Shape) -> None:
        self.data, self.shape = data, shape

    @cached_property
    def places(self) -> tuple[Place, ...]:
        survey = Survey(memoryview(self.data))
        self.shape.read(survey)
        return tuple(survey.places)

    def of(self, *kinds: Kind) -> list[Place]:
        return [place for place in self.places if place.kind in kinds]

    def with_bytes(self, place: Place, data: bytes) -> bytes:
        return self.data[: place.start] + data + self.data[place.start + place.size :]


class Survey(Cursor):
    """A cursor that notes every place that is read."""

    def __init__(self, data: memoryview) -> None:
        super().__init__(data)
        self.places: list[Place] = []

    def skip(self, size: int) -> int:
        """Each number of a run gets its own place. Only the caller knows the run, so its frame is inspected."""
        start = at = super().skip(size)
        run = sys._getframe(1).f_locals.get("step")
        widths = [calcsize(f">{letter}") for letter in _letters(run.letters)] if isinstance(run, Run) else [size]
        for width in widths:
            self.places += [Place(Kind.NUMBER, at, width, compact=False)] if width else []
            at += width
        return start

    def uvarint(self) -> int:
        start = self.position
        value = super().uvarint()
        self.places.append(Place(Kind.VARINT, start, self.position - start, compact=True))
        return value

    def count(self, size: int, element_bytes: int) -> int:
        self._last_is(Kind.COUNT)
        return super().count(size, element_bytes)

    def view(self, size: int) -> memoryview:
        self._last_is(Kind.LENGTH)
        view = super().view(size)
        if size:
            self._last_is(Kind.CONTENT)
        return view

    def _last_is(self, kind: Kind) -> None:
        self.places[-1] = self.places[-1]._replace(kind=kind)


def _letters(letters: str) -> list[str]:
    """The letters of a `struct` format, each with the count before it, if it has one."""
    return re.findall(r"\d*[a-zA-Z?]", letters)
