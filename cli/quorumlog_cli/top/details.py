"""What is inside a row of `quorumlog top`: the partitions of a topic or group, the directories of a broker. Pure."""

from __future__ import annotations

from quorumlog.watch.health import is_nearly_full
from quorumlog.watch.sample import Broker, Group, Topic
from quorumlog.watch.words import short_count, short_size
from quorumlog_cli.terminal.output import NONE
from quorumlog_cli.top.table import Column, Row, Table
from quorumlog_cli.top.views import Watched, lag_text

TOPIC, GROUP, BROKER = "topic", "group", "broker"

_PARTITIONS = (
    Column("PART", 5, right=True),
    Column("LEADER", 6, right=True),
    Column("EPOCH", 5, right=True, drop=2),
    Column("REPLICAS", 10, flexible=True),
    Column("IN SYNC", 10),
    Column("FIRST", 9, right=True, drop=3),
    Column("END", 11, right=True),
    Column("SIZE", 7, right=True, drop=1),
)
_OFFSETS = (
    Column("TOPIC", 12, flexible=True),
    Column("PART", 4, right=True),
    Column("COMMITTED", 11, right=True),
    Column("END", 11, right=True, drop=2),
    Column("LAG", 8, right=True),
    Column("MEMBER", 20, drop=1),
)
_MEMBERS = (
    Column("MEMBER", 20, flexible=True),
    Column("CLIENT", 14, drop=1),
    Column("HOST", 15, drop=2),
    Column("PARTS", 5, right=True),
    Column("LAG", 8, right=True),
)
_DIRECTORIES = (
    Column("DIRECTORY", 16, flexible=True),
    Column("STATE", 9),
    Column("REPL", 5, right=True),
    Column("DATA", 7, right=True),
    Column("FREE", 7, right=True),
    Column("FULL", 4, right=True),
    Column("", 8, drop=1, is_bar=True),
)
_LED = (Column("TOPIC", 12, flexible=True), Column("LEADS", 5, right=True), Column("HOLDS", 5, right=True))


def details(watched: Watched, kind: str, name: str) -> list[Table]:
    """Of one row as it is now. kind: TOPIC, GROUP or BROKER."""
    sample = watched.newest
    if sample is None:
        return [Table(name, _LED, (), note="no answer yet")]
    if kind == TOPIC:
        topic = sample.topics.get(name)
        return [Table(f"topic {name}", _PARTITIONS, (), note="it is gone") if topic is None else _partitions(topic)]
    if kind == GROUP:
        group = sample.groups.get(name)
        return [Table(f"group {name}", _OFFSETS, (), note="it is gone")] if group is None else _group(group)
    broker = next((one for one in sample.brokers if str(one.node_id) == name), None)
    if broker is None:
        return [Table(f"broker {name}", _DIRECTORIES, (), note="it is gone")]
    return [_directories(broker), _led(broker, list(sample.topics.values()))]


def _partitions(topic: Topic) -> Table:
    rows = [
        Row(
            str(one.index),
            (
                str(one.index),
                NONE if one.is_offline else str(one.leader),
                str(one.epoch) if one.epoch >= 0 else NONE,
                ",".join(map(str, one.replicas)),
                ",".join(map(str, one.isr)),
                str(one.first) if one.first >= 0 else NONE,
                str(one.end) if one.end >= 0 else NONE,
                short_size(one.size_bytes),
            ),
            "bad" if one.is_offline else "warn" if one.is_under_replicated else "",
        )
        for one in topic.partitions
    ]
    title = f"topic {topic.name} · {len(rows)} partitions · {short_size(topic.size_bytes)}"
    return Table(title, _PARTITIONS, tuple(rows), sum(bool(row.level) for row in rows), "none")


def _group(group: Group) -> list[Table]:
    clients = {one.member_id: one.client_id or one.member_id for one in group.members}
    offsets = [
        Row(
            f"{one.topic}-{one.partition}",
            (
                one.topic,
                str(one.partition),
                str(one.committed) if one.committed >= 0 else NONE,
                str(one.end) if one.end >= 0 else NONE,
                "former" if one.is_of_former_topic else lag_text(one),
                clients.get(one.member_id, one.member_id) or "nobody",
            ),
        )
        for one in group.offsets
    ]
    lags = {one.member_id: 0 for one in group.members}
    for one in group.offsets:
        if one.member_id in lags:
            lags[one.member_id] += max(0, one.lag)
    members = [
        Row(
            one.member_id,
            (
                one.member_id + (f" ({one.instance_id})" if one.instance_id else ""),
                one.client_id,
                one.host,
                str(len(one.partitions)),
                short_count(lags[one.member_id]),
            ),
        )
        for one in group.members
    ]
    title = f"group {group.group_id} · {group.state} · lag {lag_text(group)}"
    assignor = f" · {group.assignor}" if group.assignor else ""
    return [
        Table(title, _OFFSETS, tuple(offsets), note=group.unread or "nothing was committed"),
        Table(f"members · {len(members)}{assignor}", _MEMBERS, tuple(members), note=group.unread or "none"),
    ]


def _directories(broker: Broker) -> Table:
    rows = []
    for one in broker.directories:
        free, used = one.free_share, one.total_bytes - one.usable_bytes
        state = "offline" if one.error else "cordoned" if one.is_cordoned else "online"
        cells = (
            one.path,
            state,
            str(one.replicas),
            short_size(one.size_bytes),
            short_size(one.usable_bytes),
            f"{1 - free:.0%}" if free is not None else NONE,
            f"{used}/{one.total_bytes}" if free is not None else "",
        )
        rows.append(Row(one.path, cells, "bad" if one.error else "warn" if is_nearly_full(one) else ""))
    title = f"broker {broker.node_id} · {broker.state.value} · {broker.host}:{broker.port}"
    return Table(title, _DIRECTORIES, tuple(rows), sum(bool(row.level) for row in rows), "this cluster does not tell")


def _led(broker: Broker, topics: list[Topic]) -> Table:
    counts = {
        topic.name: (
            sum(one.leader == broker.node_id for one in topic.partitions),
            sum(broker.node_id in one.replicas for one in topic.partitions),
        )
        for topic in topics
    }
    rows = [
        Row(name, (name, str(leads), str(holds)))
        for name, (leads, holds) in sorted(counts.items(), key=lambda one: (-one[1][0], one[0]))
        if holds
    ]
    return Table(f"partitions · {sum(int(row.cells[2]) for row in rows)}", _LED, tuple(rows), note="none")
