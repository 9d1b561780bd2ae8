"""The cores of a mirror without a cluster: origins, names, homes and chains, settings, what is kept, KIP-382's
bytes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import ConfigError
from quorumlog.ids import Offset
from quorumlog.spark.mirror.kept import Kept, KeptTopic, SideMadeAnew, check_sides, kept_text, read_kept, with_topics
from quorumlog.spark.mirror.origin import HEADER, Home, Origin, origin_of
from quorumlog.spark.mirror.records import (
    Checkpoint,
    Entry,
    Returned,
    checkpoint_record,
    entries_for,
    entry_record,
    heartbeat_record,
    read_entries,
    returned_record,
)
from quorumlog.spark.mirror.topics import (
    Names,
    Side,
    TopicChange,
    TopicShape,
    change_of,
    check_alias,
    name_topics,
    topic_pattern,
    with_homes,
)
from tests.spark.mirror_texts import origin_text

ID, OTHER = "abcdefghijklmnopqrstu1", "abcdefghijklmnopqrstu2"
EAST, WEST = Side("east", "cluster-e"), Side("west", "cluster-w")


@given(st.text("abAB09_-.", min_size=1), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_an_origin_is_read_as_it_was_written(cluster: str, partition: int, offset: int) -> None:
    origin = Origin(Home(cluster, ID, partition), Offset(offset), OTHER)
    headers = [("a", b"1"), (HEADER, origin_text(origin).encode())]
    assert origin_of(headers, OTHER) == origin
    assert origin_of(headers, ID) is None, "an application has handed the header on to another topic"
    assert origin_of([*headers, ("own", b"")], OTHER) is None, "it is always the last one"


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"c/t/1/2/x", f"c/{ID}/1/{OTHER}".encode()])
def test_what_is_no_origin(value: bytes | None) -> None:
    assert origin_of([(HEADER, value)], OTHER) is None
    assert origin_of([], OTHER) is None


@pytest.mark.parametrize(
    ("topics", "name", "taken"),
    [
        ("orders.*", "orders-eu", True),
        ("orders", "orders-eu", False),
        ("orders,refunds", "refunds", True),
        ("orders|refunds", "xrefunds", False),
        (".*", "__consumer_offsets", False),
        (".*", "heartbeats", False),
        (".*", "heartbeats-eu", True),
        (".*", "a.checkpoints.internal", False),
        (".*", "connect-internal", False),
        (".*", "internal", True),
    ],
)
def test_which_topics_a_pattern_takes(topics: str, name: str, taken: bool) -> None:
    assert bool(re.search(topic_pattern(topics), name)) is taken


@pytest.mark.parametrize("topics", ["", " , ", "orders[", "a,*b"])
def test_patterns_that_are_none(topics: str) -> None:
    with pytest.raises(ConfigError, match="--topics"):
        topic_pattern(topics)


@pytest.mark.parametrize("alias", ["", "a.b", "a b", "é", "x" * 101])
def test_aliases_that_are_none(alias: str) -> None:
    with pytest.raises(ConfigError, match="is no alias of a cluster"):
        check_alias(alias)


def named(topics: list[str], copies: dict[str, Entry] | None = None, names: Names = Names.PREFIXED, restored: str = ""):  # type: ignore[no-untyped-def]
    return name_topics(topics, topic_pattern(".*"), names, EAST, WEST, copies or {}, restored)


def test_own_topics_have_the_sources_name_in_front_and_copies_go_home() -> None:
    copies = {
        "west.orders": Entry("west.orders", "cluster-w", "orders", ID),
        "north.orders": Entry("north.orders", "cluster-n", "orders", ID),
    }
    found = named(["orders", "west.orders", "north.orders", "__x"], copies)
    assert found.to == {"orders": "east.orders", "west.orders": "orders"}
    assert found.homes == {"west.orders"}
    assert list(found.left_out) == ["north.orders"] and "cluster-n" in found.left_out["north.orders"]
    assert named(["orders"], {}, Names.SAME).to == {"orders": "orders"}
    assert named(["north.orders"], copies, restored="cluster-n").to == {"north.orders": "orders"}


def test_who_asks_for_a_topic_on_the_way_back_gets_its_copies_too() -> None:
    copies = {
        "west.orders": Entry("west.orders", "cluster-w", "orders", ID),
        "west.refunds": Entry("west.refunds", "cluster-w", "refunds", ID),
        "north.orders": Entry("north.orders", "cluster-n", "orders", ID),
    }
    pattern = with_homes(topic_pattern("orders"), copies, ("cluster-w", ""))
    topics = ["orders", "west.orders", "westXorders", "west.refunds", "north.orders", "west.orders.x"]
    assert [name for name in topics if re.search(pattern, name)] == ["orders", "west.orders"]


def test_two_topics_of_one_name_and_names_that_are_too_long_are_left_out() -> None:
    copies = {"c": Entry("c", "cluster-w", "east.orders", ID)}
    found = named(["c", "orders", "x" * 245], copies)
    assert found.to == {"c": "east.orders"}
    assert "as topic 'c' is" in found.left_out["orders"] and "cannot be a topic" in found.left_out["x" * 245]


@given(st.permutations(["ab", "ba", "bc", "cb", "ca", "ac"] * 2), st.booleans())
def test_no_name_has_a_prefix_twice_whatever_mirrors_run_in_whatever_order(flows: list[str], same: bool) -> None:
    """Three clusters, each of which mirrors all into both others, under aliases that change (KAFKA-9914)."""
    names = Names.SAME if same else Names.PREFIXED
    topics: dict[str, set[str]] = {cluster: {"t"} for cluster in "abc"}
    entries: dict[str, dict[tuple[str, str], Entry]] = {cluster: {} for cluster in "abc"}
    for number, flow in enumerate(flows):
        source, target = flow
        of = entries_for(entries[source].values(), target)
        alias = f"{source}{number % 2}"
        made = name_topics(topics[source], topic_pattern(".*"), names, Side(alias, source), Side("z", target), of)
        for topic, to in made.to.items():
            topics[target].add(to)
            if topic not in made.homes:
                entries[target].setdefault((to, source), Entry(to, source, topic, ID))
    for found in topics.values():
        assert all(name.count(".") <= 1 for name in found), found
        assert len(found) <= 5, "its own, and one for each other cluster and alias"


def test_entries_are_read_as_they_were_written() -> None:
    one, two = Entry("a.t", "cluster-a", "t", ID), Entry("a.t", "cluster-w", "t", OTHER)
    records = [entry_record(one), entry_record(two)]
    log = [(key.encode(), value.encode()) for key, value in records]
    found = read_entries([(b"not ours", b"x"), *log, (None, None), (b'"ab"', b"{}"), (b"[1,2]", b"{}")])
    assert set(found.copies.values()) == {one, two} and not found.returned
    assert entries_for(found.copies.values(), "cluster-w") == {"a.t": two}
    assert entries_for(found.copies.values(), "cluster-a") == {"a.t": one}
    assert read_entries([*log, (log[0][0], None)]).copies == {("a.t", "cluster-w"): two}


def test_what_came_home_is_read_as_it_was_written_and_grows_only() -> None:
    first, later = Returned("t", "c", {0: (5, 9), 1: (2, 3)}), Returned("t", "c", {0: (20, 30), 2: (0, 1)})
    key, value = returned_record(first)
    assert read_entries([(key.encode(), value.encode())]).returned == {("t", "c"): first}
    assert later.joined(first) == Returned("t", "c", {0: (5, 30), 1: (2, 3), 2: (0, 1)})
    assert first.joined(None) == first


KNOWN = frozenset(
    {"max.message.bytes", "message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms",
     "retention.ms", "min.insync.replicas", "cleanup.policy"}
)  # fmt: skip
LONG, INT = str(2**63 - 1), str(2**31 - 1)
FORCED = {
    "message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": LONG,
    "message.timestamp.after.max.ms": LONG, "max.message.bytes": INT,
}  # fmt: skip
SETTINGS = [
    ("a new topic", {"retention.ms": "5"}, {}, False, {**FORCED, "retention.ms": "5"}),
    ("log append time", {"message.timestamp.type": "LogAppendTime"}, {}, False, FORCED),
    ("as they are", {"retention.ms": "5"}, {**FORCED, "retention.ms": "5"}, False, {}),
    ("taken away on the source", {}, {**FORCED, "retention.ms": "5"}, False, {"retention.ms": None}),
    ("of a cluster", {"min.insync.replicas": "3"}, {**FORCED, "min.insync.replicas": "1"}, False, {}),
    ("not known there", {"durability": "synced"}, FORCED, False, {}),
    ("home", {"retention.ms": "5"}, {"retention.ms": "9"}, True, FORCED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "is_home", "want"), [c[1:] for c in SETTINGS], ids=[c[0] for c in SETTINGS]
)
def test_settings(source: dict[str, str], target: dict[str, str], is_home: bool, want: dict[str, str | None]) -> None:
    made = change_of(
        TopicShape(partitions=2, own=source), TopicShape(partitions=2, own=target, known=KNOWN), is_home=is_home
    )
    assert made == TopicChange(0, want)


def test_partitions_are_raised_and_never_fewer() -> None:
    assert [
        change_of(TopicShape(partitions=of), TopicShape(partitions=3), is_home=False).partitions for of in (2, 3, 5)
    ] == [0, 0, 5]


KEPT = Kept(
    source="s", target="t", source_alias="a", names="prefixed", salt="x", topics={"o": KeptTopic(ID, "a.o", ID)}
)


def test_what_is_kept_is_read_as_it_was_written() -> None:
    assert read_kept(kept_text(KEPT)) == KEPT
    assert read_kept(kept_text(replace(KEPT, before={"o": {"0": 5}}))).before == {"o": {"0": 5}}
    for text, why in (("{", "damaged"), ("{}", "damaged"), ('{"v": 2}', "has version 2")):
        with pytest.raises(ConfigError, match=why):
            read_kept(text)


def test_a_side_that_was_made_anew_is_named() -> None:
    check_sides(KEPT, "s", "t", "a", "prefixed")
    with pytest.raises(SideMadeAnew, match=r"the source's cluster was s .* now it is u"):
        check_sides(KEPT, "u", "t", "a", "prefixed")
    with pytest.raises(SideMadeAnew, match=r"the target's cluster was t .* now it is u"):
        check_sides(KEPT, "s", "u", "a", "prefixed")
    with pytest.raises(ConfigError, match="other names"):
        check_sides(KEPT, "s", "t", "b", "prefixed")
    assert with_topics(KEPT, {"p": KeptTopic(ID, "a.p", ID)}).topics.keys() == {"o", "p"}
    for now, why in (
        (KeptTopic(OTHER, "a.o", ID), "topic 'o' of the source .*made anew"),
        (KeptTopic(ID, "a.o", OTHER), "topic 'a.o' of the target .*made anew"),
        (KeptTopic(ID, "a.o", ""), "topic 'a.o' of the target .*not there any more"),
    ):
        with pytest.raises(SideMadeAnew, match=why):
            with_topics(KEPT, {"o": now})


def test_bytes_of_checkpoints_and_heartbeats() -> None:
    """As Connect's mirror writes them: 16-bit lengths, a version of 16 bits before a value, all big-endian."""
    key, value = checkpoint_record(Checkpoint("g", "a.o", 2, 7, 9, "m"))
    assert key == b"\0\1g\0\3a.o\0\0\0\2"
    assert value == b"\0\0" + b"\0" * 7 + b"\7" + b"\0" * 7 + b"\x09" + b"\0\1m"
    assert heartbeat_record("a", "b", 258) == (b"\0\1a\0\1b", b"\0\0" + b"\0" * 6 + b"\1\2")


def test_aliases_are_counted_by_cluster() -> None:
    """Two aliases of one source make two topics, as in KIP-382; neither goes on from there."""
    copies = {name: Entry(name, "cluster-n", "t", ID) for name in ("n.t", "north.t")}
    assert Counter(named(["n.t", "north.t"], copies).to) == {}
