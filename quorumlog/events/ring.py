"""The newest events of one node: what it has applied of the metadata, and what it has met itself.

The ring is bounded by `events.max`. A broker that dies changes thousands of partitions at once, so events of single
partitions have a part of the ring of their own, and push out none of the others. So have those that clients cause as
often as they like: none of them shall make a node forget that it lost a disk. What falls out is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from heapq import merge

from quorumlog.ids import NodeId
from quorumlog.messages.events import DescribeEventsResponse, Event

OF_PARTITIONS = "partition."
OF_CLIENTS = ("group.", "quota.", "login.")
MAX_TEXT_CHARACTERS = 300
MAX_ANSWERED = 10_000
NO_OFFSET = -1


class EventRing:
    """wall_ms: the node's clock, for what comes from no record. limit: of events; a quarter is kept for those that are
    not of single partitions, and half of it for those that are not of clients either."""

    def __init__(self, node_id: NodeId, wall_ms: Callable[[], int], limit: int) -> None:
        assert limit >= 0
        self._node_id, self._wall_ms = node_id, wall_ms
        others = (limit + 3) // 4
        clients = others // 2
        self._partitions: deque[Event] = deque(maxlen=limit - others)
        self._clients: deque[Event] = deque(maxlen=clients)
        self._others: deque[Event] = deque(maxlen=others - clients)
        self._number = 0
        self._complete_since_ms = wall_ms()
        self.lost = 0  # events that have fallen out since the start

    @property
    def number(self) -> int:
        """Of the newest event; 0: there was none."""
        return self._number

    def note(self, kind: str, subject: str, text: str) -> None:
        """Something that the node has met now."""
        self._put(kind, subject, text, self._wall_ms(), NO_OFFSET, "")

    def of_record(self, kind: str, subject: str, text: str, at_ms: int, offset: int, record: str) -> None:
        """A metadata record that the node applies. at_ms: the record's time; offset: its own. record: its type."""
        self._put(kind, subject, text, at_ms, offset, record)

    def find(
        self, since_ms: int = 0, kinds: Collection[str] = (), subject: str = "", limit: int = MAX_ANSWERED
    ) -> DescribeEventsResponse:
        """The newest `limit` that fit, in their order. kinds, subject: as in DescribeEventsRequest."""
        limit = max(0, min(limit, MAX_ANSWERED))
        fitting: deque[Event] = deque(maxlen=limit)
        for event in merge(self._partitions, self._clients, self._others, key=lambda one: one.number):
            if event.at_ms >= since_ms and fits(event, kinds, subject):
                fitting.append(event)
        return DescribeEventsResponse(events=tuple(fitting), lost=self.lost, complete_since_ms=self._complete_since_ms)

    def _put(self, kind: str, subject: str, text: str, at_ms: int, offset: int, record: str) -> None:
        self._number += 1
        event = Event(
            at_ms=at_ms,
            node_id=self._node_id,
            number=self._number,
            kind=kind,
            subject=cut(subject),
            text=cut(text),
            offset=offset,
            record=record,
        )
        part = self._part_of(kind)
        if len(part) == part.maxlen:
            self.lost += 1
            gone = part[0] if part else event
            self._complete_since_ms = max(self._complete_since_ms, gone.at_ms + 1)
        part.append(event)

    def _part_of(self, kind: str) -> deque[Event]:
        if kind.startswith(OF_PARTITIONS):
            return self._partitions
        return self._clients if kind.startswith(OF_CLIENTS) else self._others


def fits(event: Event, kinds: Collection[str], subject: str) -> bool:
    """Whether an event is of one of the kinds, or of any if there are none, and of the subject."""
    if kinds and not any(event.kind == kind or event.kind.startswith(f"{kind}.") for kind in kinds):
        return False
    if subject.endswith("*"):
        return event.subject.startswith(subject[:-1])
    return not subject or event.subject == subject


def cut(text: str) -> str:
    """As much of a text as an event keeps: clients choose names that are as long as a request."""
    return text if len(text) <= MAX_TEXT_CHARACTERS else text[: MAX_TEXT_CHARACTERS - 3] + "..."
