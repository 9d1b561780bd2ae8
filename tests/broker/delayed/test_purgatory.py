from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog_broker.delayed.purgatory import Purgatory, Reason, Waiter
from tests.parts import few


def test_each_way_out() -> None:
    purgatory: Purgatory[str] = Purgatory()
    completed: list[tuple[str, Reason]] = []
    for name in ("offset", "state", "time"):
        purgatory.watch([(name, 10)], 100, lambda reason, name=name: completed.append((name, reason)))  # type: ignore[misc]
    purgatory.reached("offset", 9)
    assert completed == []
    purgatory.reached("offset", 10)
    purgatory.state_changed("state")
    purgatory.expire(99)
    purgatory.expire(100)
    purgatory.expire(1000)
    assert completed == [("offset", Reason.OFFSET), ("state", Reason.STATE), ("time", Reason.TIME)]
    assert len(purgatory) == 0 and purgatory.deadline_ms() is None


def test_one_waiter_of_two_keys_is_completed_once() -> None:
    purgatory: Purgatory[str] = Purgatory()
    completed: list[Reason] = []
    purgatory.watch([("a", 1), ("b", 1)], 100, completed.append)
    purgatory.reached("b", 1)
    purgatory.reached("a", 1)
    purgatory.state_changed("a")
    purgatory.expire(100)
    assert completed == [Reason.OFFSET]


def test_waiters_of_one_offset_are_completed_in_order_of_arrival() -> None:
    purgatory: Purgatory[str] = Purgatory()
    completed: list[int] = []
    for number, offset in enumerate([3, 1, 2, 1]):
        purgatory.watch([("a", offset)], 100, lambda _, number=number: completed.append(number))  # type: ignore[misc]
    purgatory.reached("a", 5)
    assert completed == [0, 1, 2, 3]


def test_a_callback_may_watch_again() -> None:
    purgatory: Purgatory[str] = Purgatory()
    completed: list[Reason] = []
    purgatory.watch([("a", 1)], 100, lambda _: void(purgatory.watch([("a", 2)], 100, completed.append)))
    purgatory.reached("a", 1)
    assert completed == [] and len(purgatory) == 1
    purgatory.reached("a", 2)
    assert completed == [Reason.OFFSET]


def void(_: object) -> None:
    return None


def test_memory_follows_the_number_of_waiters() -> None:
    purgatory: Purgatory[str] = Purgatory()
    for number in range(2_000):
        waiter = purgatory.watch([("a", number), ("b", 1)], 10_000, void)
        purgatory.cancel(waiter)
    assert not purgatory._by_key and len(purgatory._by_time) < 200


KEYS = ["a", "b", "c"]


@given(st.data())
@settings(max_examples=few(150), deadline=None)
def test_exactly_once_against_a_list(data: st.DataObject) -> None:
    """A dumb second answer: all waiters in a list, every one checked at every event."""
    purgatory: Purgatory[str] = Purgatory()
    completed: list[tuple[int, Reason]] = []
    want: list[tuple[int, Reason]] = []
    waiting: dict[int, tuple[dict[str, int], int, Waiter[str]]] = {}
    now_ms = 0

    def settle(which: list[int], reason: Reason) -> None:
        for number in which:
            want.append((number, reason))
            del waiting[number]

    for number in range(data.draw(st.integers(1, 40))):
        match data.draw(st.sampled_from(["watch", "watch", "reach", "state", "time", "cancel"])):
            case "watch":
                wanted = data.draw(st.dictionaries(st.sampled_from(KEYS), st.integers(0, 9), min_size=1))
                deadline = now_ms + data.draw(st.integers(0, 20))
                done = lambda reason, number=number: completed.append((number, reason))  # noqa: E731
                waiting[number] = (wanted, deadline, purgatory.watch(list(wanted.items()), deadline, done))
            case "reach":
                key, position = data.draw(st.sampled_from(KEYS)), data.draw(st.integers(0, 9))
                purgatory.reached(key, position)
                settle([n for n, (w, _, _) in waiting.items() if w.get(key, 99) <= position], Reason.OFFSET)
            case "state":
                key = data.draw(st.sampled_from(KEYS))
                purgatory.state_changed(key)
                settle([n for n, (w, _, _) in waiting.items() if key in w], Reason.STATE)
            case "time":
                now_ms += data.draw(st.integers(0, 10))
                purgatory.expire(now_ms)
                settle([n for n, (_, d, _) in waiting.items() if d <= now_ms], Reason.TIME)
            case "cancel" if waiting:
                number = data.draw(st.sampled_from(sorted(waiting)))
                purgatory.cancel(waiting.pop(number)[2])
        assert completed == want
        assert len(purgatory) == len(waiting)
        assert purgatory.deadline_ms() == min((d for _, d, _ in waiting.values()), default=None)
