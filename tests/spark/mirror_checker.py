"""What a fail-over must keep, as a check of a history: of what was written, what lies where, and what a group has read.

Rules:
1. Each record that was acknowledged, on either side, is there once on each side, in its partition, with its key, value,
   headers and time. What was not acknowledged may be there, once.
2. Records that were written first on one side lie in the same order on both.
3. The group has read each acknowledged record once, wherever it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class Found(NamedTuple):
    """A record in a log, without its origin header. number: of the record, in the whole history."""

    number: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


class Written(NamedTuple):
    """home: the side that it was written on first."""

    home: str
    partition: int
    record: Found


@dataclass(frozen=True)
class History:
    """logs: by side and partition, in the order of offsets. read: numbers, as the group's members got them."""

    acknowledged: Sequence[Written] = ()
    logs: Mapping[str, Mapping[int, Sequence[Found]]] = field(default_factory=dict)
    read: Sequence[int] = ()


def problems(history: History) -> list[str]:
    """Empty: all is kept."""
    found = [text for side, log in sorted(history.logs.items()) for text in _of_records(side, log, history)]
    found += _of_orders(history)
    found += _of_numbers("the group", Counter(history.read), [one.record.number for one in history.acknowledged])
    return found


def _of_records(side: str, log: Mapping[int, Sequence[Found]], history: History) -> Iterable[str]:
    wanted = {one.record.number: one for one in history.acknowledged}
    counts = Counter(one.number for records in log.values() for one in records)
    yield from _of_numbers(side, counts, wanted.keys())
    for partition, records in sorted(log.items()):
        for one in records:
            its = wanted.get(one.number)
            if its is not None and (its.partition, its.record) != (partition, one):
                yield f"{side}: record {one.number} is not what it was: {one} in {partition}, was {its}"


def _of_numbers(where: str, counts: Counter[int], wanted: Iterable[int]) -> Iterable[str]:
    lost = sorted(number for number in wanted if not counts[number])
    twice = sorted(number for number, count in counts.items() if count > 1)
    if lost:
        yield f"{where}: {len(lost)} lost: {lost[:10]}"
    if twice:
        yield f"{where}: {len(twice)} twice: {twice[:10]}"


def _of_orders(history: History) -> Iterable[str]:
    """Each side against the one with the first name."""
    homes = {one.record.number: one.home for one in history.acknowledged}
    orders = {
        side: {
            (home, partition): [one.number for one in records if homes.get(one.number) == home]
            for home in sorted(set(homes.values()))
            for partition, records in log.items()
        }
        for side, log in sorted(history.logs.items())
    }
    first, *others = orders.values() if orders else [{}]
    for other in others:
        for (home, partition), numbers in sorted(first.items()):
            its_numbers = other.get((home, partition), [])
            both = set(numbers) & set(its_numbers)
            mine, its = ([n for n in dict.fromkeys(one) if n in both] for one in (numbers, its_numbers))
            if mine != its:
                yield f"records of {home} in partition {partition} lie in another order on another side"
