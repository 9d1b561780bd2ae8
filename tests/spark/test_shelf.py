"""What waits on a shelf: cases, and a simpler second shelf that does the same."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quorumlog.spark.session.kept_connections import Shelf

MOST = 3


def shelf(*entries: tuple[str, str, int], most: int = MOST) -> Shelf[str]:
    made: Shelf[str] = Shelf(most)
    for key, one, until_ms in entries:
        made.put(key, one, until_ms)
    return made


def test_the_one_that_was_put_last_is_taken_once() -> None:
    made = shelf(("a", "first", 100), ("a", "second", 100), ("b", "other", 100))
    assert [made.take("a", 0) for _ in range(3)] == ["second", "first", None]
    assert made.take("b", 0) == "other" and len(made) == 0


def test_one_whose_time_is_over_is_not_taken_and_is_due() -> None:
    made = shelf(("a", "short", 10), ("b", "long", 100))
    assert made.take("a", 9) == "short"
    made.put("a", "short", 10)
    assert made.take("a", 10) is None
    assert (made.due(9), made.due(10), made.due(10), made.next_due_ms) == ([], ["short"], [], 100)


def test_where_there_is_no_room_the_oldest_leaves() -> None:
    made = shelf(("a", "1", 100), ("b", "2", 100), most=2)
    assert made.put("c", "3", 100) == "1"
    assert (len(made), made.take("a", 0), made.take("b", 0)) == (2, None, "2")


def test_one_that_is_dropped_is_there_no_more() -> None:
    made = shelf(("a", "1", 100))
    assert (made.drop("1"), made.drop("1"), made.take("a", 0), made.next_due_ms) == (True, False, None, None)


class Shelves(RuleBasedStateMachine):
    """Beside a list of all that was put and has not left."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf: Shelf[str] = Shelf(MOST)
        self.there: list[tuple[str, str, int]] = []
        self.made: list[str] = []  # compared by identity, so each has one object
        self.now_ms = 0

    @rule(key=st.sampled_from("ab"), keep_ms=st.integers(1, 20))
    def put(self, key: str, keep_ms: int) -> None:
        self.made.append(f"number {len(self.made)}")
        left = self.shelf.put(key, self.made[-1], self.now_ms + keep_ms)
        self.there.append((key, self.made[-1], self.now_ms + keep_ms))
        assert left == (self.there.pop(0)[1] if len(self.there) > MOST else None)

    @rule(key=st.sampled_from("ab"))
    def take(self, key: str) -> None:
        fits = [one for one in self.there if one[0] == key and self.now_ms < one[2]]
        assert self.shelf.take(key, self.now_ms) == (fits[-1][1] if fits else None)
        self.there = [one for one in self.there if one not in fits[-1:]]

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        dropped = data.draw(st.sampled_from(self.made))
        assert self.shelf.drop(dropped) == any(one[1] is dropped for one in self.there)
        self.there = [one for one in self.there if one[1] is not dropped]

    @rule(ms=st.integers(1, 15))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        assert self.shelf.due(self.now_ms) == [one for _, one, until_ms in self.there if until_ms <= self.now_ms]
        self.there = [one for one in self.there if one[2] > self.now_ms]

    @invariant()
    def nothing_else_waits(self) -> None:
        assert len(self.shelf) == len(self.there) <= MOST
        assert self.shelf.next_due_ms == min((one[2] for one in self.there), default=None)


TestShelves = Shelves.TestCase
