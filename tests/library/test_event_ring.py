"""The ring of a node's events: what it keeps, what falls out, what a question finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog.events.failed_logins import BULK, WINDOW_MS, FailedLogins
from quorumlog.events.ring import MAX_TEXT_CHARACTERS, EventRing


class Wall:
    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms


def ring(limit: int = 100, wall: Wall | None = None) -> EventRing:
    return EventRing(3, wall or Wall(), limit)


def told(events: EventRing, **how: object) -> list[str]:
    return [one.text for one in events.find(**how).events]  # type: ignore[arg-type]


def test_an_event_has_the_time_of_its_record_or_of_the_node() -> None:
    wall = Wall()
    events = ring(wall=wall)
    events.of_record("broker.fenced", "broker/2", "fenced", 500, 77, "BrokerRegistrationChangeRecord")
    wall.ms = 1_234
    events.note("loop.stall", "node/3", "held up")
    first, second = events.find().events
    assert (first.at_ms, first.offset, first.record) == (500, 77, "BrokerRegistrationChangeRecord")
    assert (second.at_ms, second.offset, second.record, second.node_id, second.number) == (1_234, -1, "", 3, 2)


def test_questions_are_by_time_kind_subject_and_number() -> None:
    events = ring()
    events.of_record("partition.isr", "partition/orders-1", "a", 10, 1, "R")
    events.of_record("partition.leader", "partition/orders-10", "b", 20, 2, "R")
    events.of_record("broker.fenced", "broker/1", "c", 30, 3, "R")
    assert told(events, since_ms=20) == ["b", "c"]
    assert told(events, kinds=("partition",)) == ["a", "b"]
    assert told(events, kinds=("partition.isr", "broker")) == ["a", "c"]
    assert told(events, kinds=("part",)) == [], "a kind's words are whole"
    assert told(events, subject="partition/orders-1") == ["a"]
    assert told(events, subject="partition/orders-*") == ["a", "b"]
    assert told(events, limit=2) == ["b", "c"]
    assert told(events, limit=0) == told(events, limit=-1) == []


def test_partitions_do_not_push_out_what_is_rare() -> None:
    events = ring(limit=8)
    events.note("directory.offline", "directory/d", "rare")
    for number in range(50):
        events.of_record("partition.isr", f"partition/t-{number}", str(number), 2_000 + number, number, "R")
    found = events.find()
    assert [one.text for one in found.events] == ["rare", *map(str, range(44, 50))]
    assert found.lost == 44 and found.complete_since_ms == 2_000 + 43 + 1


KINDS = ["partition.isr", "broker.fenced", "group.rebalance"]


@given(st.lists(st.sampled_from(KINDS), max_size=60), st.integers(0, 20))
def test_a_ring_holds_the_newest_of_each_part_and_counts_the_rest(kinds: list[str], limit: int) -> None:
    events = ring(limit)
    for kind in kinds:
        events.note(kind, "s", "t")
    numbers = [one.number for one in events.find().events]
    all_numbers = list(range(1, len(kinds) + 1))
    others = (limit + 3) // 4
    room = {"partition": limit - others, "group": others // 2, "broker": others - others // 2}
    newest: list[int] = []
    for sort, most in room.items():
        of_sort = [number for number, kind in zip(all_numbers, kinds, strict=True) if kind.startswith(f"{sort}.")]
        newest += of_sort[-most:] if most else []
    assert numbers == sorted(newest)
    assert events.lost == len(kinds) - len(numbers) and len(numbers) <= limit


def test_a_name_of_a_client_is_cut() -> None:
    events = ring()
    events.note("group.rebalance", "group/" + "x" * 30_000, "y" * 30_000)
    [event] = events.find().events
    assert len(event.subject) == len(event.text) == MAX_TEXT_CHARACTERS


def test_failed_logins_are_an_event_in_bulk_only() -> None:
    events = ring()
    logins = FailedLogins(events)
    for number in range(BULK - 1):
        logins.failed("CLIENT", number)
    logins.failed("OTHER", 50)
    assert told(events) == []
    for number in range(1_000):
        logins.failed("CLIENT", 100 + number)
    assert [one.subject for one in events.find().events] == ["listener/CLIENT"], "once in a window"
    for number in range(BULK):
        logins.failed("CLIENT", WINDOW_MS + 2_000 + number)
    assert len(told(events)) == 2


def test_what_clients_cause_as_they_like_pushes_out_nothing_else() -> None:
    events = ring(limit=16)
    events.note("directory.offline", "directory/d", "rare")
    for number in range(1_000):
        for kind in ("group.rebalance", "quota.throttled", "login.failed"):
            events.note(kind, "group/g", str(number))
    assert told(events) == ["rare", "999", "999"]
