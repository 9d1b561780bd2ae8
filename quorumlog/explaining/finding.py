"""What a cause says: a finding, which cannot be made without evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from quorumlog.messages.events import Event


class Severity(IntEnum):
    """NOTICE: so it is, and nothing is to be done at once. The others are Nagios' states."""

    NOTICE = 0
    WARNING = 1
    CRITICAL = 2


class NoEvidence(ValueError):
    """A cause was named without anything that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """text: what was read. source: the call that told it, with the answering node where one broker tells for itself.

    at_ms: since 1970; of an event, else of the reading. offset, record: of a metadata record; -1 and empty: none.
    """

    text: str
    source: str
    at_ms: int
    offset: int = -1
    record: str = ""
    is_event: bool = False

    @classmethod
    def of_event(cls, event: Event) -> Evidence:
        return cls(
            text=f"{event.subject}: {event.text}",
            source=f"DescribeEvents of node {event.node_id}, event {event.number} ({event.kind})",
            at_ms=event.at_ms,
            offset=event.offset,
            record=event.record,
            is_event=True,
        )

    def document(self) -> dict[str, Any]:
        where = {} if self.offset < 0 else {"metadata_offset": self.offset, "record": self.record}
        return {"text": self.text, "source": self.source, "at_ms": self.at_ms, **where}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """cause: its name in the table. state: in one sentence. why: the oldest event first, then what was read now.

    next: what happens by itself. do: a command, or a sentence where no command helps. also: other subjects that it is
    about, as the topic of a partition.
    """

    cause: str
    subject: str
    severity: Severity
    state: str
    why: tuple[Evidence, ...]
    next: str
    do: str
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.why:
            raise NoEvidence(f"{self.cause} of {self.subject} was named without evidence")

    def document(self) -> dict[str, Any]:
        return {
            "cause": self.cause,
            "subject": self.subject,
            "severity": self.severity.name.lower(),
            "state": self.state,
            "why": [one.document() for one in self.why],
            "next": self.next,
            "do": self.do,
        }


def evidence(*found: Evidence | Event | None) -> tuple[Evidence, ...]:
    """Events by time, then the rest; what is None was not found."""
    told = [Evidence.of_event(one) if isinstance(one, Event) else one for one in found if one is not None]
    events = {(one.source, one.at_ms): one for one in told if one.is_event}
    return (*sorted(events.values(), key=lambda one: one.at_ms), *(one for one in told if not one.is_event))


def listed(names: Iterable[object], most: int = 5) -> str:
    """Some of many for a sentence."""
    found = [str(one) for one in names]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
