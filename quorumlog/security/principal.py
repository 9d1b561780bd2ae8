"""Who makes a request, as access rules name it."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import NodeId

USER = "User"
NODE = "Node"  # of nodes that have proven themselves; no client gets it


class Principal(NamedTuple):
    """type: USER or NODE. name: any text, also with colons."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")  # who has shown nothing (Kafka's name for it)


def node_principal(node_id: NodeId) -> Principal:
    return Principal(NODE, str(node_id))


def parse_principal(text: str) -> Principal:
    """TYPE:NAME, divided at the first colon (Kafka's SecurityUtils). Raises ValueError."""
    kind, found, name = text.partition(":")
    if not found or not kind or not name:
        raise ValueError(f"{text!r} is not TYPE:NAME; write User:NAME")
    return Principal(kind, name)
