"""The history: what clients requested and what they were told, in order.

Statuses (RELIABILITY 3.4): ok; fail only if the record is certainly not in the log; info for everything else, also
without an answer. Values are unique, so that a record that is read identifies the send that wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from quorumlog.ids import Offset

Key = tuple[str, int]  # topic, partition


class Status(Enum):
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(slots=True, kw_only=True)
class Send:
    """One record. offset: as acknowledged, else -1. retried: the log may hold it more than once. idempotent: the log
    may never hold it more than once."""

    process: str
    key: Key
    value: str
    acks: int
    invoked_ns: int
    idempotent: bool = False
    status: Status = Status.INFO
    offset: Offset = -1
    retried: bool = True
    ended_ns: int = -1
    error: str = ""

    def ok(self, offset: Offset, retried: bool, now_ns: int) -> None:
        self.status, self.offset, self.retried, self.ended_ns = Status.OK, offset, retried, now_ns

    def fail(self, error: str, now_ns: int) -> None:
        self.status, self.error, self.ended_ns = Status.FAIL, error, now_ns

    def info(self, error: str, now_ns: int) -> None:
        self.status, self.error, self.ended_ns = Status.INFO, error, now_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Records that a reader got, in order. assignment: number of times that the reader has set its positions."""

    process: str
    assignment: int
    key: Key
    records: tuple[tuple[Offset, str], ...]
    at_ns: int


@dataclass(slots=True)
class History:
    """final: what new readers read after healing, from the start to `final_ends` (exclusive)."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    created: list[str] = field(default_factory=list)  # topics whose creation was acknowledged
    final: dict[Key, dict[Offset, str]] = field(default_factory=dict)
    final_ends: dict[Key, Offset] = field(default_factory=dict)
    final_topics: list[str] = field(default_factory=list)

    def of_status(self, status: Status) -> list[Send]:
        return [send for send in self.sends if send.status is status]
