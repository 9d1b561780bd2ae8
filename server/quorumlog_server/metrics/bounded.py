"""Holds each label to a number of values, because anybody who may create topics or groups makes new ones.

What is beyond the bound is one series: its label is empty, and it has the label overflow="true" besides. A name such
as `_other` would not do, because it may be a topic. A value that is kept stays kept for as long as there is such a
value, and one that is not stays outside: a counter that changed sides would look as if it had begun anew. For the
same reason the counter of the rest does not fall when one of its parts goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quorumlog_server.metrics.reading import Labels, Number, Reading, Value, merged
from quorumlog_server.metrics.series import Kind, Rest, Series

MOST_VALUES = 1_000  # of one label, over all series


class Row(NamedTuple):
    """labels: empty where the value is beyond the bound. overflow: one of them is."""

    labels: Labels
    overflow: bool
    value: Value


class BoundedLabels:
    """Remembers between scrapes which values are kept. most: of one label."""

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._kept: dict[str, set[str]] = {}  # by label
        self._outside: dict[str, set[str]] = {}  # values that were there and found no place
        self._told: dict[Series, dict[Labels, Value]] = {}  # the counters of the rest, by what is left of the labels
        self._last: dict[Series, dict[Labels, Value]] = {}  # of the parts of the rest, by all labels

    def bound(self, reading: Reading) -> dict[Series, Iterable[Row]]:
        """The rows of a page, to be gone over once, in the order in which they were read: to sort them takes long, and
        gives no way. They are made one by one, because many objects at once are work for the garbage collector, which
        gives no way either."""
        self._choose(reading)
        return {series: self._rows_of(series, found, reading) for series, found in reading.rows.items()}

    def _choose(self, reading: Reading) -> None:
        there: dict[str, set[str]] = {}
        for series, found in reading.rows.items():
            for at, label in enumerate(series.labels):
                values = there.setdefault(label, set())
                for labels in reading.each(found):
                    values.add(labels[at])
        for label in self._kept.keys() | there.keys():
            now = there.get(label, set())
            kept = self._kept.get(label, set()) & now
            outside = self._outside.get(label, set()) & now
            places = self._most - len(kept)
            new = now - kept - outside
            taken = new if len(new) <= places else set(sorted(new)[:places])
            self._kept[label], self._outside[label] = kept | taken, outside | (new - taken)

    def _rows_of(self, series: Series, found: dict[Labels, Value], reading: Reading) -> Iterator[Row]:
        if not any(self._outside.get(label) for label in series.labels) and series not in self._told:
            for labels, value in found.items():
                yield Row(labels, False, value)
            return
        rest = dict[Labels, list[tuple[Labels, Value]]]()
        for labels, value in reading.each(found.items()):
            shown = self._shown(series, labels)
            if shown == labels:
                yield Row(labels, False, value)
            else:
                rest.setdefault(shown, []).append((labels, value))
        yield from self._rest_of(series, rest)

    def _shown(self, series: Series, labels: Labels) -> Labels:
        pairs = zip(series.labels, labels, strict=True)
        return tuple("" if one in self._outside.get(label, ()) else one for label, one in pairs)

    def _rest_of(self, series: Series, rest: dict[Labels, list[tuple[Labels, Value]]]) -> Iterable[Row]:
        if series.kind is Kind.GAUGE:
            return [
                Row(shown, True, _total(series.rest, (value for _, value in parts))) for shown, parts in rest.items()
            ]
        told, last = self._told.setdefault(series, {}), self._last.get(series, {})
        for shown, parts in rest.items():
            grown = _total(Rest.SUM, (_since(value, last.get(labels)) for labels, value in parts))
            told[shown] = merged(Rest.SUM, told[shown], grown) if shown in told else grown
        self._last[series] = {labels: value for parts in rest.values() for labels, value in parts}
        for shown in [one for one in told if not self._may_be_told(series, one)]:
            del told[shown]
        return [Row(shown, True, value) for shown, value in sorted(told.items())]

    def _may_be_told(self, series: Series, shown: Labels) -> bool:
        """False for what goes with a kept value that is gone."""
        return all(not one or one in self._kept[label] for label, one in zip(series.labels, shown, strict=True))


def _total(rest: Rest, values: Iterable[Value]) -> Value:
    total: Value | None = None
    for value in values:
        total = value if total is None else merged(rest, total, value)
    assert total is not None
    return total


def _since(value: Value, before: Value | None) -> Value:
    """By how much a part of the rest has grown; one that is smaller than before has begun anew."""
    if before is None:
        return value
    if isinstance(value, tuple):
        assert isinstance(before, tuple)
        grown = tuple(a - b for a, b in zip(value, before, strict=True))
        return value if any(one < 0 for one in grown) else grown
    assert not isinstance(before, tuple)
    less: Number = value - before
    return value if less < 0 else less
