"""Events as pages show them: those that nodes tell (`DescribeEvents`), else what the console has seen change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from quorumlog.watch.past import Past


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


def of_nodes(told: Mapping[int, Any]) -> list[Happening]:
    """told: answers of `AsyncAdmin.describe_events`, by node. Newest first. What several nodes met by the same record
    of the metadata is one event."""
    found: list[Happening] = []
    of_record: dict[tuple[int, str, str], int] = {}
    for node_id, response in sorted(told.items()):
        for one in response.events:
            record = f"{one.record} @{one.offset}" if one.offset >= 0 else ""
            key = (one.offset, one.kind, one.subject)
            if record and key in of_record:
                older = found[of_record[key]]
                found[of_record[key]] = older._replace(node=f"{older.node}, {node_id}")
                continue
            of_record[key] = len(found)
            where = page_of(one.subject)
            found.append(Happening(one.at_ms, one.kind, one.subject, one.text, str(node_id), record, where))
    return sorted(found, key=lambda one: one.at_ms, reverse=True)


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
