"""When a fault counts as named, what counts as wrong besides, and when all is silent: from looks that nobody took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.drill.command import drawn
from jepsen.drill.faults import EIGHT, Fault
from jepsen.drill.healthy import WORK, health_of
from jepsen.drill.more_faults import BY_NAME, MORE
from jepsen.drill.report import failures, report
from jepsen.drill.run import Drill, Outcome
from jepsen.drill.sights import (
    ALERT,
    CHECK,
    CONSOLE,
    Course,
    Expected,
    Look,
    Sights,
    Told,
    Verdict,
    judged,
    named_after,
    silent_after,
)
from jepsen.drill.watchers import causes_of_alerts, told_of, told_on

DEAD = Expected(
    causes=("broker.lost",),
    subject="broker/3",
    alerts=("QuorumlogBrokerLost",),
    consequences=frozenset({"replica.broker-away"}),
)
LOST, AWAY = Told("broker.lost", "broker/3"), Told("replica.broker-away", "partition/orders-0")
COURSE = Course(put_s=10, lifted_s=40, ended_s=100)
CAUSES_OF = {"QuorumlogBrokerLost": ("broker.lost",), "QuorumlogUnderReplicated": ("replica.broker-away",)}


def look(ended_s: float, *told: Told, watcher: str = CHECK, took_s: float = 1.0, trouble: str = "") -> Look:
    return Look(watcher=watcher, began_s=ended_s - took_s, ended_s=ended_s, told=frozenset(told), trouble=trouble)


NAMED = [
    ("at the end of the look", [look(9), look(14, LOST)], 4.0),
    ("the first counts", [look(12), look(15, AWAY, LOST), look(20, LOST)], 5.0),
    ("a look that began before may see it", [look(11, LOST, took_s=10)], 1.0),
    ("a consequence is not its name", [look(14, AWAY)], None),
    ("another broker is not it", [look(14, Told("broker.lost", "broker/2"))], None),
    ("a notice is not enough", [look(14, Told("broker.lost", "broker/3", calm=True))], None),
    ("told before it was there", [look(9, LOST), look(14)], None),
]


@pytest.mark.parametrize(("looks", "want"), [one[1:] for one in NAMED], ids=[one[0] for one in NAMED])
def test_named(looks: list[Look], want: float | None) -> None:
    assert named_after(looks, DEAD, 10) == want


SILENT = [
    ("the first silent look", [look(45, LOST), look(50), look(55)], 10.0),
    ("one that began before the lift does not count", [look(41, took_s=5), look(50, LOST)], None),
    ("loud again", [look(45), look(50, LOST), look(60)], 20.0),
    ("what it could not see is not silence", [look(45, trouble="TimeoutError")], None),
    ("a notice is silence", [look(45, Told("broker.starting", "broker/3", calm=True))], 5.0),
    ("noise of before is silence", [look(45, Told("directory.nearly-full", "directory/d"))], 5.0),
]


@pytest.mark.parametrize(("looks", "want"), [one[1:] for one in SILENT], ids=[one[0] for one in SILENT])
def test_silent(looks: list[Look], want: float | None) -> None:
    assert silent_after(looks, DEAD, 40, {"directory.nearly-full"}) == want


def test_what_is_neither_the_fault_nor_follows_is_wrong() -> None:
    other = Told("partition.hot", "partition/orders-1")
    sights = Sights([look(5), look(14, LOST, AWAY, other), look(50)])
    found = judged(sights, CHECK, DEAD, COURSE, CAUSES_OF)
    assert found.wrong == ("partition.hot of partition/orders-1",) and found.named_s == 4
    assert found.failures(30) == ["check told partition.hot of partition/orders-1"]
    both = Sights([look(5), look(14, LOST, other, Told("partition.hot", "partition/a-0")), look(50)])
    assert judged(both, CHECK, DEAD, COURSE, CAUSES_OF).wrong == ("partition.hot of partition/a-0 and 1 more",)
    before = Sights([look(5, other), look(14, LOST, other), look(50)])
    assert judged(before, CHECK, DEAD, COURSE, CAUSES_OF).failures(30) == []


def test_an_alert_follows_if_a_cause_of_it_does() -> None:
    under, hot = Told("QuorumlogUnderReplicated", "instance=a"), Told("QuorumlogHotPartition", "")
    sights = Sights([look(14, Told("QuorumlogBrokerLost", ""), under, hot, watcher=ALERT), look(50, watcher=ALERT)])
    found = judged(sights, ALERT, DEAD, COURSE, CAUSES_OF)
    assert found.wrong == ("QuorumlogHotPartition of ",) and found.named_s == 4


def test_a_name_that_comes_late_fails() -> None:
    found = judged(
        Sights([look(41, LOST, took_s=2), look(50)]), CHECK, DEAD, Course(put_s=5, lifted_s=42, ended_s=60), {}
    )
    assert found.failures(30) == ["check did not name it within 30 s (1 looks)"] and found.failures(40) == []


def test_where_no_rule_is_for_it_no_alert_is_wanted() -> None:
    calm = Expected(causes=("group.no-members",), subject="group/g", calm=True, no_alert="a notice")
    found = judged(Sights([look(20, watcher=ALERT), look(60, watcher=ALERT)]), ALERT, calm, COURSE, {})
    assert not found.is_wanted and found.failures(30) == []


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=20), st.integers(0, 50))
def test_silence_agrees_with_a_look_from_the_end(given_looks: list[tuple[int, bool]], lifted: int) -> None:
    """The dumb way: the beginning of the silent tail."""
    looks = [look(float(at), *([LOST] if loud else [])) for at, loud in sorted(given_looks)]
    after = [one for one in looks if one.began_s >= lifted]
    tail: list[Look] = []
    for one in reversed(after):
        if one.told:
            break
        tail.insert(0, one)
    assert silent_after(looks, DEAD, lifted, ()) == (tail[0].ended_s - lifted if tail else None)


def test_healthy_minutes_count_alarms_and_miss_work() -> None:
    sights = Sights(
        [
            look(5, LOST),  # before they began
            look(20, AWAY),
            look(25, Told("broker.shut-down", "broker/1", calm=True)),
            look(30, Told("directory.nearly-full", "directory/d"), watcher=CONSOLE),
            look(35, watcher=ALERT, trouble="OSError"),
        ]
    )
    found = health_of(sights, 10, 60, Counter(dict.fromkeys(WORK[:2], 1)))
    assert found.alarms == {"check replica.broker-away": 1, "alert trouble: OSError": 1}
    assert found.of_machine == {"console directory.nearly-full": 1}
    assert found.failures()[-1] == f"healthy: there was not one of {WORK[2]}" and len(found.failures()) == 3


def test_what_a_page_and_a_command_tell_is_the_same() -> None:
    row = {"cause": "group.lag", "subject": "group/<b>", "severity": "warning"}
    page = '<section data-cause="group.lag" data-subject="group/&lt;b&gt;" data-severity="warning">'
    assert told_on(page) == told_of([row]) == {Told("group.lag", "group/<b>")}


def test_a_seed_draws_the_eight_and_one_more() -> None:
    assert drawn(7) == drawn(7) and drawn(7) != drawn(8)
    for seed in range(20):
        assert set(EIGHT) <= set(drawn(seed)) and len(set(drawn(seed)) - set(EIGHT)) == 1
    assert {one.name for seed in range(200) for one in drawn(seed)} == set(BY_NAME)
    assert len(MORE) + len(EIGHT) == len(BY_NAME)


def test_a_fault_that_does_not_go_away_stops_the_run() -> None:
    first, second, third = EIGHT[:3]
    gone = Verdict(watcher=CHECK, named_s=1, silent_s=2)
    verdicts = {first: gone, second: Verdict(watcher=CHECK, named_s=1), third: gone}

    class Struck(Drill):
        def __init__(self) -> None:
            """Without a cluster."""

        def strike(self, fault: Fault, now_s: Callable[[], float]) -> Outcome:
            return Outcome(fault=fault, expected=DEAD, verdicts=(verdicts[fault],))

    outcomes = Struck().strike_all((first, second, third), lambda: 0.0)
    assert [one.went_away for one in outcomes] == [True, False, False]
    assert failures(outcomes, None) == [
        "slow-disk: check was not silent again in time",
        "dead-node: it was not put, because slow-disk did not go away",
    ]
    assert "| dead-node | not put |" in report(1, (CHECK,), outcomes, None, Counter(), "0")


def test_alerts_that_name_a_fault_are_rules() -> None:
    assert "QuorumlogBrokerLost" in causes_of_alerts()
