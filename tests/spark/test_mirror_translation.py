"""Where groups go on after a mirror: cases, and any two logs that mirror each other against a reader that remembers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import Offset
from quorumlog.spark.mirror.origin import Home, Origin
from quorumlog.spark.mirror.translation import Span, last_copy, translate

A, B = Home("a", "A" * 22, 0), Home("b", "B" * 22, 0)


@dataclass
class FakeLog:
    """records_: by offset; a missing offset is a marker, or was compacted. None: written here first."""

    home: Home
    kept: dict[int, Origin | None] = field(default_factory=dict)
    start: Offset = field(default=Offset(0))
    end: Offset = field(default=Offset(0))
    looked_at: int = 0

    def records(self, start: Offset, end: Offset) -> Iterator[tuple[Offset, Origin | None]]:
        for at in range(max(start, self.start), min(end, self.end)):
            if at in self.kept:
                self.looked_at += 1
                yield Offset(at), self.kept[at]

    def write(self, origin: Origin | None) -> int:
        at = self.end
        self.kept[at] = origin
        self.end = Offset(at + 1)
        return at

    def marker(self) -> None:
        self.end = Offset(self.end + 1)

    def trim(self, before: int) -> None:
        self.kept = {at: origin for at, origin in self.kept.items() if at >= before}
        self.start = Offset(before)


def log(home: Home, text: str, start: int = 0) -> FakeLog:
    """A word for each offset: o written here, m a marker, else the offset of a copy of the other."""
    other = B if home is A else A
    made = FakeLog(home, start=Offset(start), end=Offset(start))
    for word in text.split():
        if word == "m":
            made.marker()
        else:
            made.write(None if word == "o" else Origin(other, Offset(int(word)), home.topic_id))
    return made


def whole(of: FakeLog) -> Span:
    return Span(of.start, of.end)


def span_of(of: FakeLog, other: Home) -> Span:
    """From the first copy to the last one."""
    copies = [at for at, origin in of.kept.items() if origin is not None and origin.home == other]
    return Span(Offset(min(copies)), Offset(max(copies) + 1)) if copies else Span(Offset(0), Offset(0))


CASES = [
    ("the same offsets", "o o o", "0 1 2 m", 1, False, 1),
    ("at the end of what was mirrored, behind the marker", "o o o", "0 1 2 m", 3, False, 4),
    ("ahead of the mirror", "o o o o o", "0 1 m", 4, False, 3),
    ("markers of several batches", "o o o o", "0 m 1 2 m 3 m", 3, False, 5),
    ("a gap on the source: the next copy", "o m o", "0 2 m", 1, False, 1),
    ("an emptied source, an empty target (KAFKA-12635)", "", "", 100, False, 0),
    ("written into the target besides: not passed over", "o o", "0 1 m o o", 2, False, 3),
    ("a repeated batch: the second copy will do", "o o o", "0 1 0 1 2", 2, False, 4),
    ("nothing was committed by the mirror yet", "o o", "", 1, False, 0),
    ("home: behind the last copy that was read", "0 1 2 m", "o o o o", 2, True, 2),
    ("home: all of it, and no more than was mirrored", "0 1 2 m", "o o o o", 4, True, 3),
    ("home: nothing of it was read", "0 1 2 m", "o o o", 0, True, 0),
    ("home, and written during the fail-over", "0 1 m o o o", "o o 3 4 5 m", 5, True, 4),
    ("home: own records that were not copied come first", "0 1 m o o", "o o o 3 4 m", 5, True, 2),
    ("home: read to its end, with what was written during it", "0 1 m o o", "o o 3 4 m", 5, True, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "offset", "is_home", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_translate(source: str, target: str, offset: int, is_home: bool, want: int) -> None:
    there, here = log(A, source), log(B, target)
    assert translate(Offset(offset), there, here, whole(here), whole(there) if is_home else None) == want


def test_a_group_behind_the_start_of_the_source_begins_at_the_first_copy() -> None:
    target = log(B, "50 51 m")
    assert translate(Offset(3), log(A, "o o", start=50), target, whole(target), None) == 0


def test_nobody_can_tell_where_copies_of_a_home_are_gone() -> None:
    source, target = log(A, "o", start=9), log(B, "o o 9")
    assert translate(Offset(9), source, target, whole(target), whole(source)) is None


def test_a_search_looks_at_few_records() -> None:
    target = log(B, " ".join(map(str, range(100_000))))
    assert translate(Offset(70_001), log(A, ""), target, whole(target), None) == 70_001
    assert target.looked_at < 5, "no offset is left out"
    target = log(B, " ".join("m" if at % 7 else str(at * 3) for at in range(100_000)))
    assert target.kept[translate(Offset(210_000), log(A, ""), target, whole(target), None)].offset == 210_000  # type: ignore
    assert target.looked_at < 20


def test_the_last_copy_is_found_behind_other_records() -> None:
    target = log(B, "0 1 2 " + "o " * 500)
    assert last_copy(target, A, whole(target)) == 2
    assert last_copy(target, B, whole(target)) is None


@given(
    st.lists(st.sampled_from(["a", "a", "b", "ab", "ba", "marker a", "marker b"]), max_size=30),
    st.data(),
)
def test_no_record_is_left_out_and_none_is_read_twice(steps: list[str], data: st.DataObject) -> None:
    """a, b: something is written there first; ab, ba: all that is there is mirrored. The reader remembers what it
    read."""
    logs = {"a": FakeLog(A), "b": FakeLog(B)}
    done = {"a": 0, "b": 0}
    for step in [*steps, "ab", "ba"]:
        if step in logs:
            logs[step].write(None)
        elif step.startswith("marker"):
            logs[step[-1]].marker()
        else:
            source, target = logs[step[0]], logs[step[1]]
            for at, origin in source.records(Offset(done[step[0]]), source.end):
                if origin is None:
                    target.write(Origin(source.home, at, target.home.topic_id))
            done[step[0]] = source.end
    source, target = logs["a"], logs["b"]
    offset = data.draw(st.integers(0, source.end))
    identity = lambda it, at, origin: (it.home, at) if origin is None else (origin.home, origin.offset)  # noqa: E731
    read = {identity(source, at, origin) for at, origin in source.records(Offset(0), Offset(offset))}
    unread = [at for at, origin in target.records(Offset(0), target.end) if identity(target, at, origin) not in read]
    there = any(origin is not None for _, origin in source.records(Offset(0), source.end))
    found = translate(Offset(offset), source, target, whole(target), whole(source) if there else None)
    told = {"a": span_of(source, B), "b": span_of(target, A)}
    assert found == translate(Offset(offset), source, target, told["b"], told["a"] if there else None)
    assert found is not None
    assert 0 <= found <= target.end, "never beyond the target's end"
    if there or not any(origin is None for _, origin in target.records(Offset(0), target.end)):
        first = unread[0] if unread else target.end
        assert found <= first, f"{target.kept.get(first)} at {first} would never be read"
        again = list(target.records(found, Offset(first)))
        assert not again, f"the records at {again} would be read again"


@given(st.lists(st.integers(1, 6), max_size=8), st.integers(0, 60))
def test_repeated_batches_lose_nothing(cuts: list[int], offset: int) -> None:
    """Each number is how much of a batch of 6 was written before it was begun again."""
    target = FakeLog(B)
    count = 0
    for cut in [*cuts, 6]:
        for at in range(count, count + cut):
            target.write(Origin(A, Offset(at), B.topic_id))
        count += 6 if cut == 6 else 0
    found = translate(Offset(offset), FakeLog(A, end=Offset(count)), target, whole(target), None)
    assert found is not None and found <= target.end
    seen = {origin.offset for _, origin in target.records(found, target.end) if origin is not None}
    assert set(range(offset, count)) <= seen
