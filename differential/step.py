"""One request of a sequence: the same for both sides, but for what each side has given out: ids, epochs, sessions.

Such a value stands in a request as a `Ref`, which each side's `Book` resolves. So a request does not depend on earlier
answers, and any step of a sequence can be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quorumlog.records.format.batch import LOG_APPEND_TIME, NO_SEQUENCE, TRANSACTIONAL, Codec, seal
from quorumlog.records.format.compression import compress
from quorumlog.records.format.record import Record, write_record

Values = dict[str, Any]
NO_ID = bytes(16)
UNKNOWN: dict[str, Any] = {
    "topic": NO_ID, "producer": -1, "epoch": -1, "member": "", "generation": -1, "session": 0, "session epoch": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ref:
    """What a side has given out. kind: one of UNKNOWN, which has the value for one that was not given out yet.

    label: the topic's name, or a name that the step which asks for it has in `Step.label`. plus: added to a number.
    """

    kind: str
    label: str
    plus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A record batch to produce. rows: key, value. times: of the records, ms since 1970. max_time: None: the largest.

    appended: the batch says that the broker gave it its time. damage: of its bytes.
    """

    rows: tuple[tuple[bytes | None, bytes | None], ...]
    times: tuple[int, ...]
    codec: Codec = Codec.NONE
    producer: Any = -1
    epoch: Any = -1
    sequence: int = NO_SEQUENCE
    transactional: bool = False
    max_time: int | None = None
    appended: bool = False
    damage: Callable[[bytes], bytes] | None = None

    def encode(self, book: Book) -> bytes:
        out, first = bytearray(), self.times[0] if self.times else -1
        for number, ((key, value), time) in enumerate(zip(self.rows, self.times, strict=True)):
            write_record(out, Record(number, time, key, value), 0, first)
        attributes = int(self.codec) | (TRANSACTIONAL if self.transactional else 0)
        data = seal(
            bytes(compress(self.codec, bytes(out))),
            base_offset=0,
            leader_epoch=-1,
            attributes=attributes | (LOG_APPEND_TIME if self.appended else 0),
            last_offset_delta=max(0, len(self.rows) - 1),
            base_timestamp=first,
            max_timestamp=max(self.times, default=-1) if self.max_time is None else self.max_time,
            producer_id=book.resolve(self.producer),
            producer_epoch=book.resolve(self.epoch),
            base_sequence=self.sequence,
            count=len(self.rows),
        )
        return data if self.damage is None else self.damage(data)


@dataclass(slots=True)
class Book:
    """What one side has given out, by kind and label."""

    known: dict[tuple[str, str], Any] = field(default_factory=dict)

    def resolve(self, template: Any) -> Any:
        """The request's values with this side's own ids, and its batches as bytes."""
        if isinstance(template, Ref):
            found = self.known.get((template.kind, template.label), UNKNOWN[template.kind])
            return found + template.plus if template.plus else found
        if isinstance(template, Batch):
            return template.encode(self)
        if isinstance(template, dict):
            return {name: self.resolve(value) for name, value in template.items()}
        if isinstance(template, list | tuple):
            if template and all(isinstance(one, Batch) for one in template):
                return b"".join(one.encode(self) for one in template)
            return [self.resolve(value) for value in template]
        return template

    def learn(self, kind: str, label: str, value: Any) -> None:
        self.known[kind, label] = value

    def forget(self, kind: str, label: str) -> None:
        self.known.pop((kind, label), None)

    def label_of(self, kind: str, value: Any) -> str | None:
        """The label under which this side has given out the value; the last one if several."""
        found = [label for (of, label), known in self.known.items() if of == kind and known == value]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """api: kio's name. values: a superset of the version's fields. label: what it asks for is known by this name.

    lane: the connection; "main" for what is answered at once. odd: what is odd in it, "" for a meaningful request.
    answered: False for Produce without acknowledgement.
    """

    api: str
    version: int
    values: Values
    label: str = ""
    lane: str = "main"
    odd: str = ""
    answered: bool = True
