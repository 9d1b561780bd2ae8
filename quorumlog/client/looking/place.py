"""Where a search goes on: offsets by partition, in one life of a topic. As a text it fits into a link.

Forward, each partition goes on at an offset. Backward, newest first, it goes on below one; records of a page before may
lie below that, too, where times do not rise with offsets, and `taken` tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.ids import Offset, Uuid

MAX_TEXT = 60_000  # characters; a link may not be longer
MAX_OFFSET = 2**63 - 1
_ID = re.compile(r"[0-9a-f]{32}|-")
_FORWARD = re.compile(r"(\d{1,10})\.(\d{1,19})")
_BACKWARD = re.compile(r"(\d{1,10})\.(\d{1,19})\.(\d{1,19})")
_KEY = re.compile(r"(-?\d{1,19})\.(\d{1,10})\.(\d{1,19})")


class BadPlace(ValueError):
    """A text that is no place; nothing is read."""


class Key(NamedTuple):
    """Records in the order of time; those of the same ms by partition and offset."""

    timestamp_ms: int
    partition: int
    offset: Offset


class Below(NamedTuple):
    """high: exclusive; what lies at or above it is done. low: records from there on were looked at, up to `taken`."""

    high: Offset
    low: Offset


@dataclass(frozen=True, slots=True)
class Forward:
    """offsets: of the next record to look at. topic_id: empty if the cluster has none."""

    topic_id: Uuid
    offsets: Mapping[int, Offset]

    def to_text(self) -> str:
        parts = "_".join(f"{index}.{offset}" for index, offset in sorted(self.offsets.items()))
        return f"f~{self.topic_id.hex() or '-'}~{parts}"


@dataclass(frozen=True, slots=True)
class Backward:
    """taken: the oldest record of the page before; those that are newer and not below `low` were on a page. None: the
    first page."""

    topic_id: Uuid
    below: Mapping[int, Below]
    taken: Key | None = None

    def to_text(self) -> str:
        parts = "_".join(f"{index}.{high}.{low}" for index, (high, low) in sorted(self.below.items()))
        key = "-" if self.taken is None else ".".join(map(str, self.taken))
        return f"b~{self.topic_id.hex() or '-'}~{parts}~{key}"


def read_place(text: str) -> Forward | Backward:
    """Of `to_text`. Raises BadPlace."""
    if len(text) > MAX_TEXT:
        raise BadPlace(f"a place of {len(text)} characters; at most {MAX_TEXT}")
    kind, *fields = text.split("~")
    if kind not in ("f", "b") or len(fields) != (2 if kind == "f" else 3) or not _ID.fullmatch(fields[0]):
        raise BadPlace("not a place to go on from; begin the search again")
    topic_id = bytes.fromhex(fields[0]) if fields[0] != "-" else b""
    numbers = [_numbers(part, _FORWARD if kind == "f" else _BACKWARD) for part in fields[1].split("_") if part]
    if len({row[0] for row in numbers}) < len(numbers):
        raise BadPlace("a partition comes twice")
    if kind == "f":
        return Forward(topic_id, {index: Offset(offset) for index, offset in numbers})
    taken = None if fields[2] == "-" else Key(*_numbers(fields[2], _KEY))
    return Backward(topic_id, {index: Below(Offset(high), Offset(low)) for index, high, low in numbers}, taken)


def _numbers(text: str, form: re.Pattern[str]) -> list[int]:
    found = form.fullmatch(text)
    if found is None or not text.isascii():
        raise BadPlace(f"not a part of a place: {text[:40]!r}")
    numbers = [int(number) for number in found.groups()]
    if max(numbers) > MAX_OFFSET:
        raise BadPlace(f"larger than any offset: {text[:40]!r}")
    return numbers
