"""The tables of `quorumlog top` from what was watched. Pure.

A filter and an order choose what is shown of topics, groups and events; what is wrong is counted over everything, so
that a filter cannot hide it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from quorumlog.watch.health import health_of, is_nearly_full, is_silent
from quorumlog.watch.past import NO_RATE, Past, Rate
from quorumlog.watch.sample import UNKNOWN, Broker, BrokerState, Group, GroupOffset, Part, QuorumMember, Sample, Topic
from quorumlog.watch.words import clock, short_count, short_duration, short_growth, short_rate, short_size, spark
from quorumlog_cli.terminal.output import NONE
from quorumlog_cli.top.happened import Events, Happened
from quorumlog_cli.top.table import Column, Row, Table
from quorumlog_cli.top.words import since_text

HOUR_MS = 3_600_000
MAX_ROWS = 1_000  # of one table
STUCK_MS = 30_000  # behind for so long and getting further behind: worth a mark
SPARK = 8
ALIKE = 2  # events of a kind in a second that are shown each by itself
COURSE = 40  # values of a course
T = TypeVar("T")
TOPIC_ORDERS = ("rate", "size", "problems", "name")
GROUP_ORDERS = ("lag", "behind", "growth", "name")


class Watched:
    """past: its samples. trouble: why the last look brought nothing; empty: it did. asked_ms: its wall time."""

    def __init__(self, past: Past | None = None, events: Events | None = None) -> None:
        self.past, self.events = past or Past(), events or Events()
        self.trouble, self.asked_ms = "", 0
        self.every_ms = 1_000  # between two looks
        self.rates: dict[str, Rate] = {}  # of topics, by the newest sample
        self._courses: dict[str, tuple[bytes, deque[float]]] = {}

    @property
    def newest(self) -> Sample | None:
        return self.past.newest

    def add(self, sample: Sample) -> None:
        self.past.add(sample)
        self.trouble, self.asked_ms = "", sample.wall_ms
        self.rates = self.past.topic_rates()
        before, self._courses = self._courses, {}
        for name, topic in sample.topics.items():
            life, course = before.get(name, (topic.topic_id, deque[float](maxlen=COURSE)))
            if life != topic.topic_id:
                course = deque(maxlen=COURSE)
            rate = self.rates.get(name, NO_RATE).records
            if rate is not None:
                course.append(rate)
            self._courses[name] = (topic.topic_id, course)

    def course(self, topic: str) -> list[float]:
        """Of its records a second, the newest last."""
        return list(self._courses[topic][1]) if topic in self._courses else []


@dataclass(frozen=True, slots=True)
class Choice:
    """needle: part of a name, in any case; empty: all. turned: "topics" and "groups" whose order goes the other way."""

    needle: str = ""
    topic_order: str = TOPIC_ORDERS[0]
    group_order: str = GROUP_ORDERS[0]
    turned: frozenset[str] = frozenset()

    def takes(self, *texts: str) -> bool:
        needle = self.needle.lower()
        return not needle or any(needle in text.lower() for text in texts)


# --- what is wrong ---


def problems(sample: Sample | None) -> list[str]:
    """In a few words each, the worst first; of the whole cluster, whatever is shown of it."""
    if sample is None:
        return []
    health = health_of(sample)
    found = ["no quorum leader"] if health.has_no_leader else []
    counts = (
        (health.offline, "offline"),
        (health.under_replicated, "under-replicated"),
        (len(health.silent_voters), "voter silent" if len(health.silent_voters) == 1 else "voters silent"),
        (len(health.fenced), "fenced"),
        (len(health.stopping), "stopping"),
        (len(health.dead), "disk offline" if len(health.dead) == 1 else "disks offline"),
        (len(health.nearly_full), "disk nearly full" if len(health.nearly_full) == 1 else "disks nearly full"),
    )
    return found + [f"{count} {what}" for count, what in counts if count]


# --- the tables ---

_QUORUM = (
    Column("NODE", 5),
    Column("END", 10, right=True),
    Column("", 6, drop=1, flexible=True, is_bar=True),
    Column("LAG", 5, right=True),
    Column("FETCHED", 7, right=True, drop=2),
)


def quorum_table(watched: Watched) -> Table:
    """A leader has a star, an observer stands in brackets."""
    sample = watched.newest
    quorum = None if sample is None else sample.quorum
    if sample is None or quorum is None:
        return Table("quorum", _QUORUM, (), note=_missing(sample, Part.QUORUM))
    most = max((one.end for one in (*quorum.voters, *quorum.observers)), default=0)
    lags = {one.node_id: quorum.lag_of(one) for one in (*quorum.voters, *quorum.observers)}

    def row(member: QuorumMember, is_voter: bool) -> Row:
        is_leader, lag = member.node_id == quorum.leader_id, lags[member.node_id]
        name = f"{member.node_id}{'*' if is_leader else ''}" if is_voter else f"({member.node_id})"
        silent = is_silent(quorum, member)
        fetched = NONE if is_leader or member.since_fetch_ms == UNKNOWN else since_text(member.since_fetch_ms)
        shown = f"{max(0, member.end)}/{most}"
        cells = (name, str(member.end) if member.end >= 0 else NONE, shown, short_count(lag), fetched)
        return Row(str(member.node_id), cells, "warn" if silent and is_voter else "")

    rows = [row(one, True) for one in quorum.voters] + [row(one, False) for one in quorum.observers]
    leader = f"leader {quorum.leader_id}" if quorum.leader_id >= 0 else "no leader"
    title = f"quorum · {leader} epoch {quorum.epoch} · HW {quorum.high_watermark}"
    return Table(title, _QUORUM, tuple(rows), bad=sum(bool(one.level) for one in rows))


_ELECTIONS = (Column("UTC", 8), Column("ELECTION", 12, flexible=True))


def elections_table(watched: Watched) -> Table:
    since_ms = _since(watched)
    found = watched.events.elections(since_ms)
    rows = tuple(Row(f"{one.at_ms} {one.text}", (clock(one.at_ms), one.text)) for one in found)
    return Table(f"elections (1 h) · {len(rows)}", _ELECTIONS, rows, note="none in the last hour")


_BROKERS = (
    Column("BROKER", 6),
    Column("STATE", 8),
    Column("LEADS", 5, right=True),
    Column("REPL", 5, right=True, drop=2),
    Column("DATA", 7, right=True, drop=1),
    Column("DISK", 5, right=True),
    Column("ADDRESS", 10, drop=3, flexible=True),
)


def brokers_table(watched: Watched) -> Table:
    sample = watched.newest
    if sample is None:
        return Table("brokers", _BROKERS, (), note=_missing(sample, Part.BROKERS))
    led: dict[int, int] = {}
    held: dict[int, int] = {}
    for topic in sample.topics.values():
        for one in topic.partitions:
            led[one.leader] = led.get(one.leader, 0) + 1
            for node in one.replicas:
                held[node] = held.get(node, 0) + 1
    rows = [_broker(one, led.get(one.node_id, 0), held.get(one.node_id, 0)) for one in sample.brokers]
    bad = sum(bool(row.level) for row in rows)
    return Table(f"brokers · {len(rows)}", _BROKERS, tuple(rows), bad, _missing(sample, Part.BROKERS))


def _broker(one: Broker, leads: int, replicas: int) -> Row:
    sizes = sum(directory.size_bytes for directory in one.directories)
    full = _fullness(one)
    offline = any(directory.error for directory in one.directories)
    cells = (
        str(one.node_id),
        one.state.value,
        str(leads),
        str(replicas),
        short_size(sizes) if one.directories else NONE,
        "OFF!" if offline else f"{full:.0%}" if full >= 0 else NONE,
        f"{one.host}:{one.port}" + (f" {one.rack}" if one.rack else ""),
    )
    if offline or one.state is BrokerState.FENCED:
        return Row(str(one.node_id), cells, "bad")
    is_full = any(map(is_nearly_full, one.directories))
    return Row(str(one.node_id), cells, "warn" if is_full or one.state is BrokerState.STOPPING else "")


def _fullness(broker: Broker) -> float:
    """Of its fullest file system; below 0: not told."""
    return max((1 - one.free_share for one in broker.directories if one.free_share is not None), default=-1.0)


_TOPICS = (
    Column("TOPIC", 12, flexible=True),
    Column("PARTS", 5, right=True),
    Column("ISR", 8, right=True),
    Column("REC/s", 6, right=True),
    Column("IN/s", 6, right=True, drop=2),
    Column("SIZE", 6, right=True, drop=1),
    Column("LEADERS", 12, drop=4),
    Column("TREND", SPARK, drop=3),
)


def topics_table(watched: Watched, choice: Choice, with_internal: bool = True) -> Table:
    sample = watched.newest
    if sample is None:
        return Table("topics", _TOPICS, (), note=_missing(sample, Part.TOPICS))
    topics = [one for one in sample.topics.values() if with_internal or not one.is_internal]
    rates = watched.rates

    def rate(name: str) -> float:
        found = rates.get(name, NO_RATE).records
        return UNKNOWN if found is None else found

    orders: dict[str, Callable[[Topic], tuple[Any, ...]]] = {
        "rate": lambda one: (-rate(one.name), one.is_internal, one.name),
        "size": lambda one: (-one.size_bytes, one.name),
        "problems": lambda one: (-one.offline, -one.under_replicated, one.name),
        "name": lambda one: (one.name,),
    }
    shown = _ordered(
        (one for one in topics if choice.takes(one.name)), orders[choice.topic_order], "topics" in choice.turned
    )
    rows = [_topic(one, watched) for one in shown[:MAX_ROWS]]
    title = _title("topics", len(rows), len(topics), choice.needle, choice.topic_order)
    bad = sum(bool(one.offline or one.under_replicated) for one in topics)
    return Table(title, _TOPICS, tuple(rows), bad, _missing(sample, Part.TOPICS))


def _topic(one: Topic, watched: Watched) -> Row:
    level = "bad" if one.offline else "warn" if one.under_replicated else ""
    return Row(one.name, lambda: _topic_cells(one, watched), level)


def _topic_cells(one: Topic, watched: Watched) -> tuple[str, ...]:
    rate = watched.rates.get(one.name, NO_RATE)
    replicas = sum(len(part.replicas) for part in one.partitions)
    in_sync = sum(len(part.isr) for part in one.partitions)
    leaders: dict[int, int] = {}
    for part in one.partitions:
        leaders[part.leader] = leaders.get(part.leader, 0) + 1
    by_count = sorted(leaders.items(), key=lambda each: (-each[1], each[0]))
    return (
        one.name,
        str(len(one.partitions)),
        f"{in_sync}/{replicas}" + ("!" if in_sync < replicas else ""),
        short_rate(rate.records),
        short_size(rate.bytes),
        short_size(one.size_bytes),
        " ".join(f"{node if node >= 0 else '-'}:{count}" for node, count in by_count),
        spark(watched.course(one.name), SPARK),
    )


_GROUPS = (
    Column("GROUP", 10, flexible=True),
    Column("STATE", 9, drop=3),
    Column("MEM", 3, right=True, drop=2),
    Column("LAG", 6, right=True),
    Column("BEHIND", 7, right=True),
    Column("+/s", 6, right=True, drop=1),
    Column("TREND", SPARK),
)


def groups_table(watched: Watched, choice: Choice) -> Table:
    sample, past = watched.newest, watched.past
    if sample is None:
        return Table("groups", _GROUPS, (), note=_missing(sample, Part.GROUPS))
    groups = list(sample.groups.values())
    orders: dict[str, Callable[[Group], tuple[Any, ...]]] = {
        "lag": lambda one: (-one.lag, one.group_id),
        "behind": lambda one: (-(past.behind_ms(one) or 0), one.group_id),
        "growth": lambda one: (-(past.lag_trend(one.group_id) or 0), one.group_id),
        "name": lambda one: (one.group_id,),
    }
    shown = _ordered(
        (one for one in groups if choice.takes(one.group_id)), orders[choice.group_order], "groups" in choice.turned
    )
    rows = [_group(one, past) for one in shown[:MAX_ROWS]]
    title = _title("groups", len(rows), len(groups), choice.needle, choice.group_order)
    bad = sum(_is_stuck(one, past) for one in groups)
    return Table(title, _GROUPS, tuple(rows), bad, _missing(sample, Part.GROUPS))


def _group(one: Group, past: Past) -> Row:
    return Row(one.group_id, lambda: _group_cells(one, past), "warn" if _is_stuck(one, past) else "")


def _group_cells(one: Group, past: Past) -> tuple[str, ...]:
    behind = None if one.unread else past.behind_ms(one)
    older = ">" if behind and past.is_older_than_past(one) else ""
    return (
        one.group_id,
        one.state,
        str(len(one.members)),
        NONE if one.unread else lag_text(one),
        older + short_duration(behind),
        short_growth(past.lag_trend(one.group_id)),
        spark([float(value) for _, value in past.group_course(one.group_id)], SPARK),
    )


def lag_text(one: Group | GroupOffset) -> str:
    """In records, at most so many after ≤; or in offsets, where the cluster counts no records."""
    return ("≤" if one.is_estimate else "") + short_count(one.lag)


def _is_stuck(group: Group, past: Past) -> bool:
    """It has members, was behind all the while, and gets further behind."""
    if not group.members or group.lag <= 0 or (past.lag_trend(group.group_id) or 0) <= 0:
        return False
    course = past.group_course(group.group_id)
    since_ms = course[-1][0] - STUCK_MS
    return course[0][0] <= since_ms and all(behind > 0 for at_ms, behind in course if at_ms >= since_ms)


_EVENTS = (
    Column("UTC", 8),
    Column("KIND", 21, drop=1),
    Column("WHAT", 40, flexible=True),
)


def events_table(watched: Watched, choice: Choice) -> Table:
    found = watched.events.newest_first(_since(watched))
    shown = [one for one in found if choice.takes(one.kind, one.subject, one.text)]
    rows = tuple(_event(one, more) for one, more in _few(shown, choice)[:MAX_ROWS])
    title = _title("events (1 h)", len(shown), len(found), choice.needle, "")
    return Table(title, _EVENTS, rows, sum(one.level == "bad" for one in found), "none in the last hour")


def _few(shown: list[Happened], choice: Choice) -> list[tuple[Happened, int]]:
    """Each with how many more it stands for: a broker that goes takes many partitions with it, in one second.

    What is bad is always shown, and so is everything that a filter has found.
    """
    if choice.needle:
        return [(one, 0) for one in shown]
    together: dict[tuple[str, int], int] = {}
    for one in shown:
        key = (one.kind, one.at_ms // 1_000)
        together[key] = together.get(key, 0) + 1
    seen: dict[tuple[str, int], int] = {}
    found = []
    for one in shown:
        key = (one.kind, one.at_ms // 1_000)
        seen[key] = nth = seen.get(key, 0) + 1
        if one.level == "bad" or together[key] <= ALIKE or nth < ALIKE:
            found.append((one, 0))
        elif nth == ALIKE:
            found.append((one, together[key] - nth))
    return found


def _event(one: Happened, more: int) -> Row:
    key = f"{one.at_ms} {one.node_id} {one.kind} {one.subject} {one.text}"
    text = f"and {more + 1} more: {one.subject}, …" if more else f"{one.subject}: {one.text}"
    return Row(key, (clock(one.at_ms), one.kind, text), one.level)


# --- helpers ---


def _since(watched: Watched) -> int:
    return max(0, watched.asked_ms - HOUR_MS)


def _ordered(found: Iterable[T], key: Callable[[T], tuple[Any, ...]], turned: bool) -> list[T]:
    return sorted(found, key=key, reverse=turned)


def _title(name: str, shown: int, of: int, needle: str, order: str) -> str:
    counted = f"{shown} of {of}" if needle or shown < of else f"{of}"
    return f"{name} · {counted}" + (f" with {needle!r}" if needle else "") + (f" · by {order}" if order else "")


def _missing(sample: Sample | None, part: Part) -> str:
    """Why a table is empty."""
    if sample is None:
        return "no answer yet"
    return sample.missing.get(part, "none")


def all_tables(watched: Watched, choice: Choice) -> Iterable[Table]:
    yield quorum_table(watched)
    yield elections_table(watched)
    yield brokers_table(watched)
    yield topics_table(watched, choice)
    yield groups_table(watched, choice)
    yield events_table(watched, choice)
