"""What stands in the tables of `quorumlog top`: columns that fit, orders, filters that hide no problem, events once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watch_samples import BEGAN_MS, group, sample, topic

from quorumlog.messages.events import Event
from quorumlog.watch.sample import (
    BrokerState,
    GroupOffset,
    Member,
    Part,
    Partition,
    Quorum,
    QuorumMember,
    Sample,
    Topic,
)
from quorumlog_cli.top import details, views
from quorumlog_cli.top.frame import document, status, text_frame
from quorumlog_cli.top.happened import Events
from quorumlog_cli.top.table import Column, Table, fit, line, titles
from quorumlog_cli.top.views import Choice, Watched
from quorumlog_cli.top.words import bar, cut


def watched(*samples: Sample) -> Watched:
    made = Watched()
    for one in samples:
        made.add(one)
    return made


# --- words ---


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 40))
def test_a_bar_has_its_width_and_is_empty_for_nothing_only(part: int, whole: int, width: int) -> None:
    drawn = bar(part, whole, width)
    assert len(drawn) == width
    if whole and width:
        assert ("█" in drawn) == (part > 0)


# --- tables ---


@given(
    st.lists(st.builds(Column, st.text(max_size=9), st.integers(1, 20), st.booleans(), st.integers(0, 3)), min_size=1),
    st.integers(1, 200),
)
def test_columns_that_may_go_make_room(columns: list[Column], width: int) -> None:
    fitted = fit(columns, width)
    kept = {index for index, _ in fitted}
    if any(columns[index].drop for index in kept) and len(kept) > 1:
        assert sum(size for _, size in fitted) + len(fitted) - 1 <= width
    gone = [columns[index].drop for index in range(len(columns)) if index not in kept]
    assert all(gone) and kept
    assert len(titles(columns, fitted)) == sum(size for _, size in fitted) + len(fitted) - 1


def test_a_name_cannot_command_the_terminal() -> None:
    columns = (Column("N", 30),)
    assert "\x1b" not in line(columns, ["evil\x1b[2J\nname"], fit(columns, 30)) and cut("abcdef", 4) == "abc…"


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_of_a_frame_is_wider_than_the_screen(width: int) -> None:
    shown = text_frame(busy(), Choice(), width, BEGAN_MS + 20_000, "local")
    widest = max(map(len, shown.splitlines()))
    assert widest <= width if width >= 80 else "orders" in shown
    assert all(name in shown for name in ("quorum", "elections", "brokers", "topics", "groups", "events", "billing"))


def busy() -> Watched:
    """Two topics, one of them under-replicated; a group that falls behind; a fenced broker."""
    states = {1: BrokerState.SERVING, 2: BrokerState.SERVING, 3: BrokerState.FENCED}
    looks = [
        sample(
            at_ms,
            topic("orders", 100 * n, isr=(1, 2)),
            topic("prices", 10 * n),
            groups=(group("billing", GroupOffset(topic="orders", partition=0, committed=50, end=100 * n)),),
            states=states,
            epoch=1,
        )
        for n, at_ms in enumerate((0, 10_000, 20_000), 1)
    ]
    return watched(*looks)


# --- what a filter hides ---


@pytest.mark.parametrize("needle", ["", "pri", "nothing of that name"])
def test_a_filter_hides_no_problem(needle: str) -> None:
    """Of the topics, the broken one is hidden by both filters; it is counted all the same."""
    made, choice = busy(), Choice(needle=needle)
    table = views.topics_table(made, choice)
    assert table.bad == 1 and table.heading.startswith("topics 1! · ")
    assert {row.key for row in table.rows} == {name for name in ("orders", "prices") if needle in name}
    assert views.problems(made.newest) == ["1 under-replicated", "1 fenced"]
    text, level = status(made, BEGAN_MS + 20_000, "local")
    assert "1 under-replicated · 1 fenced" in text and level == "warn"
    assert document(made, choice)["problems"] == ["1 under-replicated", "1 fenced"]


def test_what_is_wrong_comes_first_and_is_counted_over_everything() -> None:
    offline = Topic(name="t", topic_id=b"t", partitions=(Partition(index=0, leader=-1, replicas=(1, 2), isr=(2,)),))
    found = views.problems(sample(0, offline, topic("u", 1, isr=(1,)), leader=-1))
    assert found == ["no quorum leader", "1 offline", "1 under-replicated"]
    assert views.problems(sample(0, topic("u", 1))) == []


def test_a_voter_that_does_not_fetch_is_named() -> None:
    voters = (
        QuorumMember(node_id=1, end=10, since_fetch_ms=0),
        QuorumMember(node_id=2, end=9, since_fetch_ms=5_001),
        QuorumMember(node_id=3),
        QuorumMember(node_id=4, end=10, since_fetch_ms=400),
    )
    quorum = Quorum(leader_id=1, epoch=7, high_watermark=10, voters=voters, observers=(QuorumMember(node_id=9, end=4),))
    made = watched(Sample(at_ms=0, wall_ms=BEGAN_MS, quorum=quorum))
    table = views.quorum_table(made)
    assert table.title == "quorum · leader 1 epoch 7 · HW 10" and table.bad == 2
    assert [(row.cells[0], row.cells[3], row.level) for row in table.rows] == [
        ("1*", "0", ""), ("2", "1", "warn"), ("3", "—", "warn"), ("4", "0", ""), ("(9)", "6", ""),
    ]  # fmt: skip
    assert views.problems(made.newest) == ["2 voters silent"]


# --- rates and orders ---


def rates_of(made: Watched, choice: Choice | None = None) -> list[tuple[str, str]]:
    return [(row.key, row.cells[3]) for row in views.topics_table(made, choice or Choice()).rows]


def test_topics_come_by_rate_and_by_other_orders() -> None:
    made = watched(
        sample(0, topic("a", 0, size=1), topic("b", 0, size=9), topic("c", 5)),
        sample(10_000, topic("a", 20, size=1), topic("b", 900, size=9), topic("c", 5)),
    )
    assert rates_of(made) == [("b", "90"), ("a", "2"), ("c", "0")]
    assert [name for name, _ in rates_of(made, Choice(topic_order="name"))] == ["a", "b", "c"]
    assert [name for name, _ in rates_of(made, Choice(topic_order="name", turned=frozenset(["topics"])))] == [
        "c",
        "b",
        "a",
    ]
    assert rates_of(made, Choice(topic_order="size"))[0][0] == "b"


def test_a_topic_made_anew_has_no_rate_and_no_course_of_its_former_life() -> None:
    """Neither a negative rate nor all that its new life holds in one second."""
    old, new = topic("t", 1_000_000, topic_id=b"old"), topic("t", 500_000, 700_000, topic_id=b"new")
    made = watched(sample(0, old), sample(1_000, topic("t", 1_000_500, topic_id=b"old")), sample(2_000, new))
    assert rates_of(made) == [("t", "—")] and made.course("t") == []
    assert document(made, Choice())["topics"][0]["records_per_s"] is None
    made.add(sample(20_000, topic("t", 500_000, 700_018, topic_id=b"new")))
    assert rates_of(made) == [("t", "1")]


def test_groups_come_by_lag_and_a_stuck_one_is_marked() -> None:
    def look(n: int) -> Sample:
        member = Member(member_id="m", client_id="c")
        behind = GroupOffset(topic="t", partition=0, committed=10, end=100 * n, member_id="m")
        stuck = group("stuck", behind)
        stuck = type(stuck)(group_id="stuck", state="Stable", members=(member,), offsets=(behind,))
        fine = group("fine", GroupOffset(topic="t", partition=0, committed=100 * n, end=100 * n))
        return sample(n * 20_000, topic("t", 100 * n), groups=(fine, stuck))

    made = watched(*map(look, range(1, 6)))
    table = views.groups_table(made, Choice())
    assert [row.key for row in table.rows] == ["stuck", "fine"] and table.bad == 1
    assert table.rows[0].cells[3:6] == ("490", ">1m20s", "+5") and table.rows[1].cells[3:6] == ("0", "0s", "0")
    assert views.groups_table(made, Choice(needle="fine")).bad == 1
    assert views.groups_table(made, Choice(group_order="name")).rows[0].key == "fine"


# --- answers that do not come ---


def test_an_old_answer_says_how_old_it_is() -> None:
    made = busy()
    assert status(made, BEGAN_MS + 25_900, "local")[0].startswith("1 under-replicated")
    text, level = status(made, BEGAN_MS + 27_000, "local")
    assert text.startswith("NO ANSWER for 7s, asking on") and level == "bad" and "1 under-replicated" in text
    made.trouble = "no broker answered"
    text, level = status(made, BEGAN_MS + 21_000, "local")
    assert text.startswith("NO ANSWER for 1s, asking on  no broker answered") and level == "bad"
    assert status(Watched(), 0, "local") == ("local  asking …", "")


def test_a_part_that_was_not_read_is_not_called_healthy() -> None:
    made = watched(sample(0, missing={Part.GROUPS: "it needs a right"}))
    text, level = status(made, BEGAN_MS, "local")
    assert "unread: groups" in text and level == "warn"
    assert views.groups_table(made, Choice()).note == "it needs a right"


# --- events ---


def event(number: int, node: int, kind: str, text: str = "x", offset: int = -1, at_ms: int = 0) -> Event:
    return Event(at_ms=at_ms or number, node_id=node, number=number, kind=kind, subject="s", text=text, offset=offset)


def test_what_every_node_tells_is_shown_once() -> None:
    events = Events()
    for node in (1, 2, 3):
        events.add(
            [event(node, node, "broker.fenced", offset=40), event(9, node, "quorum.leader", "leader 2 in epoch 3")]
        )
        events.add([event(7, node, "loop.stall")])
        events.add([event(7, node, "loop.stall")])  # asked again
    kinds = [one.kind for one in events.newest_first()]
    assert sorted(kinds) == ["broker.fenced", "loop.stall", "loop.stall", "loop.stall", "quorum.leader"]
    assert len(events.elections()) == 1


def test_events_are_bounded_and_the_oldest_go() -> None:
    events = Events(most=3)
    events.add(event(n, 1, "loop.stall") for n in range(1, 9))
    assert [one.at_ms for one in events.newest_first()] == [8, 7, 6]


def test_many_alike_in_one_second_are_one_row_and_what_is_bad_is_not_lost_among_them() -> None:
    made = watched(sample(0))
    at_ms = BEGAN_MS - 5_000
    made.events.add(event(n, 1, "partition.isr", offset=n, at_ms=at_ms) for n in range(70))
    made.events.add(event(90 + n, 1, "broker.fenced", offset=90 + n, at_ms=at_ms) for n in range(4))
    table = views.events_table(made, Choice())
    assert len(table.rows) == 6 and table.bad == 4 and "74" in table.title
    assert [row.cells[2] for row in table.rows if "more" in row.cells[2]] == ["and 69 more: s, …"]
    assert len(views.events_table(made, Choice(needle="partition")).rows) == 70


# --- inside a row ---


def test_inside_a_topic_a_group_and_a_broker() -> None:
    made = busy()
    (partitions,) = details.details(made, details.TOPIC, "orders")
    assert partitions.bad == 1 and partitions.rows[0].cells[3:5] == ("1,2,3", "1,2")
    offsets, members = details.details(made, details.GROUP, "billing")
    assert offsets.rows[0].cells == ("orders", "0", "50", "300", "250", "nobody") and members.note == "none"
    directories, led = details.details(made, details.BROKER, "1")
    assert directories.note == "this cluster does not tell" and [row.key for row in led.rows] == ["orders", "prices"]
    for kind in (details.TOPIC, details.GROUP, details.BROKER):
        tables: list[Table] = details.details(made, kind, "77")
        assert tables[0].note == "it is gone"
