"""The newest events of a cluster, each once, although every node tells those of the metadata log. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from quorumlog.events.identity import LEADER, identity
from quorumlog.ids import NodeId
from quorumlog.messages.events import Event
from quorumlog.watch.changes import Change

MAX_EVENTS = 2_000
BAD = frozenset(
    {"partition.unclean", "broker.fenced", "node.fatal", "directory.offline", "coordinator.failed", "tls.expiry"}
)
_WARN = (
    "login.",
    "recovery.",
    "transaction.",
    "disk.",
    "loop.",
    "quota.throttled",
    "tls.trouble",
    "broker.directories",
)


@dataclass(frozen=True, slots=True)
class Happened:
    """node_id: that told it; NO_NODE of what `watch` has seen from outside. offset: of the metadata record, or -1."""

    at_ms: int
    kind: str
    subject: str
    text: str
    node_id: NodeId = -1
    offset: int = -1

    @property
    def level(self) -> str:
        if self.kind in BAD:
            return "bad"
        return "warn" if self.kind.startswith(_WARN) else ""


class Events:
    """At most `most`; the oldest go first."""

    def __init__(self, most: int = MAX_EVENTS) -> None:
        self._most = most
        self._by_key: OrderedDict[tuple[object, ...], Happened] = OrderedDict()

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            self._add(identity(event), _happened(event))

    def add_changes(self, changes: Iterable[Change]) -> None:
        """Of a cluster whose nodes tell no events."""
        for one in changes:
            self._add(
                (one.at_ms, one.kind, one.subject, one.text), Happened(one.at_ms, one.kind, one.subject, one.text)
            )

    def newest_first(self, since_ms: int = 0) -> list[Happened]:
        found = [one for one in self._by_key.values() if one.at_ms >= since_ms]
        return sorted(found, key=lambda one: one.at_ms, reverse=True)

    def elections(self, since_ms: int = 0) -> list[Happened]:
        """Newest first. That a node knows no leader for a while is none."""
        return [
            one
            for one in self.newest_first(since_ms)
            if one.kind == "election" or (one.kind == LEADER and one.text.startswith("leader "))
        ]

    def _add(self, key: tuple[object, ...], event: Happened) -> None:
        if key not in self._by_key:
            self._by_key[key] = event
            while len(self._by_key) > self._most:
                self._by_key.popitem(last=False)


def _happened(event: Event) -> Happened:
    return Happened(event.at_ms, event.kind, event.subject, event.text, event.node_id, event.offset)
