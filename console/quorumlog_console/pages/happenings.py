"""Events as pages show them: those that nodes tell (`DescribeEvents`), else what the console has seen change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from quorumlog.events.identity import shared_identity
from quorumlog.messages.events import DescribeEventsResponse
from quorumlog.watch.past import Past

SAME_MS = 5_000


class Happening(NamedTuple):
    """node: that told it; empty: the console saw it. where: the page of its subject; empty: there is none.

    record: the metadata record that it comes from, with its offset; empty: none.
    """

    at_ms: int
    kind: str
    subject: str
    text: str
    node: str = ""
    record: str = ""
    where: str = ""


def of_watching(past: Past) -> list[Happening]:
    """Newest first."""
    return [
        Happening(one.at_ms, one.kind, one.subject, one.text, where=page_of(one.subject))
        for one in reversed(past.changes)
    ]


def of_nodes(told: Mapping[int, DescribeEventsResponse]) -> list[Happening]:
    """told: answers of `AsyncAdmin.describe_events`, by node. Newest first. What several nodes tell is one event; so
    is what they tell in the same words within the same seconds (SAME_MS)."""
    found: list[Happening] = []
    known: dict[tuple[object, ...], int] = {}
    for node_id, response in sorted(told.items()):
        for one in response.events:
            record = f"{one.record} @{one.offset}" if one.offset >= 0 else ""
            key = shared_identity(one) or (one.at_ms // SAME_MS, one.kind, one.subject, one.text)
            older = found[known[key]] if key in known else None
            if older is not None and str(node_id) not in older.node.split(", "):
                found[known[key]] = older._replace(node=f"{older.node}, {node_id}")
                continue
            known[key] = len(found)
            where = page_of(one.subject)
            found.append(Happening(one.at_ms, one.kind, one.subject, one.text, str(node_id), record, where))
    return sorted(found, key=lambda one: one.at_ms)[::-1]


def page_of(subject: str) -> str:
    kind, _, name = subject.partition("/")
    if kind == "partition":
        return f"/topics/{quote(name.rpartition('-')[0], safe='')}"
    if kind == "topic":
        return f"/topics/{quote(name, safe='')}"
    if kind == "group":
        return f"/groups/one?id={quote(name, safe='')}"
    return {
        "broker": "/nodes",
        "node": "/nodes",
        "directory": "/nodes",
        "quorum": "/quorum",
        "transaction": "/transactions",
    }.get(kind, "")
