"""The history: what clients requested and what they were told, in order.

Statuses: ok; fail only if the record is certainly not in the log; info for everything else, also
without an answer. Values are unique, so that a record that is read identifies the send that wrote it.

A topic that is deleted and made anew under its name has several lives, numbered from 1 on. The simulation, which sees
all disks, says to which life an acknowledged or read record belongs; 0: to one whose log is gone, or it is not known.
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
    life: int = 0

    def ok(self, offset: Offset, retried: bool, now_ns: int) -> None:
        self.status, self.offset, self.retried, self.ended_ns = Status.OK, offset, retried, now_ns

    def fail(self, error: str, now_ns: int) -> None:
        self.status, self.error, self.ended_ns = Status.FAIL, error, now_ns

    def info(self, error: str, now_ns: int) -> None:
        self.status, self.error, self.ended_ns = Status.INFO, error, now_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Records of one life that a reader got, in order. assignment: how often the reader has set its positions.

    assigned_ns: when it did so last; what it reads was fetched after that.
    """

    process: str
    assignment: int
    key: Key
    records: tuple[tuple[Offset, str], ...]
    at_ns: int
    life: int = 1
    assigned_ns: int = 0


@dataclass(slots=True, kw_only=True)
class Deletion:
    """A request to delete the records before an offset. acked_ns: -1 without an acknowledgement."""

    key: Key
    life: int
    before: Offset
    invoked_ns: int
    acked_ns: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedLoss:
    """Records at and after `end` that were committed at that time were lost, as the promise of the topic allows it.

    Only topics that leave durability to the page cache have such losses (jepsen/sim/truth/durability.py).
    """

    key: Key
    life: int
    end: Offset
    at_ns: int


@dataclass(slots=True)
class History:
    """final: what new readers read after healing, from the start to `final_ends` (exclusive).

    created: topics whose creation was acknowledged, and whose deletion nobody asked for since then. deleted: topics
    whose deletion was acknowledged, and which nobody made anew. lives: the number of each topic's last life.
    retained: by partition and life, the offset before which a policy let records go.
    configs, partitions: what was acknowledged last, unless a later request may have been carried out.
    """

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    losses: list[AllowedLoss] = field(default_factory=list)
    retained: dict[tuple[Key, int], Offset] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    lives: dict[str, int] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    final: dict[Key, dict[Offset, str]] = field(default_factory=dict)
    final_starts: dict[Key, Offset] = field(default_factory=dict)
    final_ends: dict[Key, Offset] = field(default_factory=dict)
    final_topics: list[str] = field(default_factory=list)
    final_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    final_partitions: dict[str, int] = field(default_factory=dict)

    def of_status(self, status: Status) -> list[Send]:
        return [send for send in self.sends if send.status is status]

    def last_life(self, key: Key) -> int:
        return self.lives.get(key[0], 1)

    def may_begin_at(self, key: Key, life: int) -> Offset:
        """Records before this offset may be gone: someone asked for their deletion, or a policy lets them go."""
        asked = [deletion.before for deletion in self.deletions if (deletion.key, deletion.life) == (key, life)]
        return max([*asked, self.retained.get((key, life), 0)])
