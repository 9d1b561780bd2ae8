"""What the core of an internal partition may do while it decides, and in which order it comes out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from quorumlog.ids import Offset
from quorumlog.records.control import EndTxnMarker, encode_control
from quorumlog.records.coordinator import CoordinatorRecord, Types, encode_key
from quorumlog.records.coordinator.decode import number_of
from quorumlog_broker.coordinator.counts import CoordinatorCounts
from quorumlog_broker.coordinator.ledger import Ledger
from quorumlog_broker.coordinator.timers import Timers

MAX_NOTICES = 100  # of one step; a group may lose thousands of members at once
MAX_RECORD_BYTES = 1_000_000  # unless the owner says otherwise: below Kafka's default of max.message.bytes

Timer = TypeVar("Timer", bound=Hashable)
Action = Callable[[], None]
"""Runs once: in the turn in which its records are committed."""


Sees = Callable[[str], bool]
"""Whether a client may know of the topic of this name."""


def sees_all(_topic: str) -> bool:
    return True


class Call(NamedTuple):
    """One request: the number that its answer goes to, and who sent it. client_host: with a slash, as Kafka has it."""

    number: int
    client_id: str
    client_host: str
    sees: Sees = sees_all


class Producer(NamedTuple):
    """In whose transaction a record is written."""

    producer_id: int
    producer_epoch: int


class Write(NamedTuple):
    """A record to append. value: None for a tombstone.

    producer: its record lies in a transactional batch of this producer without a sequence number, which holds nothing
    else. is_control: in a control batch; then key and value are those of the marker.
    """

    key: bytes
    value: bytes | None
    producer: Producer | None = None
    is_control: bool = False


Replay = Callable[[Offset, Sequence[Write], CoordinatorRecord | None], None]
"""Changes the durable state by these records, the first of which has this offset. The last argument is what the only
record says, where its writer has that beside the bytes: the same as they say."""


class Answer(NamedTuple):
    """Exactly one per call."""

    call: int
    response: Any


class Turn(Generic[Timer]):
    """Effects of the step that runs now. now_ms: of a clock that never goes back; wall_ms: since 1970.

    The offsets of records are known before they are appended, because only this core writes its partition. A name is
    what a record belongs to, a group or a transactional id: the first field of its key. high_watermark: exclusive.
    largest_record_bytes: that the log takes, key and value together. counts: what the calls have done.
    """

    def __init__(self, types: Types, next_offset: Offset, replay: Replay) -> None:
        self.now_ms = self.wall_ms = 0
        self.next_offset = self.high_watermark = next_offset
        self.largest_record_bytes = MAX_RECORD_BYTES
        self.timers: Timers[Timer] = Timers()
        self.writes: list[Write] = []
        self.answers: list[Answer] = []
        self.counts = CoordinatorCounts()
        self.notices: list[tuple[str, str]] = []  # what people ask about: a name, and what happened to it
        self._types = types
        self._replay = replay
        self._ledger: Ledger[tuple[int | None, Action]] = Ledger()
        self._loaded_end: Offset = 0
        self._ends: dict[str, Offset] = {}  # of what was written for each name and is not committed
        self._written: deque[tuple[Offset, str]] = deque()  # its ends, by offset

    def notice(self, name: str, text: str) -> None:
        """Something that people ask about has happened; nothing is decided by it."""
        if len(self.notices) < MAX_NOTICES:
            self.notices.append((name, text))

    def loaded(self, next_offset: Offset) -> None:
        """The log ends here. What it holds may be cut as long as the high watermark is below that end."""
        self.next_offset = self._loaded_end = next_offset

    @property
    def is_loaded_for_good(self) -> bool:
        """All that was loaded is committed."""
        return self.high_watermark >= self._loaded_end

    # --- writing ---

    def fits(self, key: Any, value: Any, version: int = 0) -> bool:
        """The log would take this record."""
        layout = self._types[number_of(key)].value
        return len(encode_key(key)) + len(layout.encode(value, version)) <= self.largest_record_bytes

    def write(self, key: Any, value: Any, version: int = 0, producer: Producer | None = None) -> None:
        """Append a record, in the version that its readers know, and change the durable state by it."""
        row = self._types[number_of(key)]
        write = Write(encode_key(key), row.value.encode(value, version), producer)
        self._append((key[0],), (write,), CoordinatorRecord(row.number, key, version, value))

    def append(self, name: str, key: bytes, value: bytes | None, producer: Producer | None = None) -> None:
        """`write` and `delete` of a record of this name that is encoded already."""
        self._append((name,), (Write(key, value, producer),))

    def append_all(self, name: str, writes: Sequence[Write]) -> None:
        """`append` of records that follow each other."""
        if writes:
            self._append((name,), writes)

    def delete(self, key: Any) -> None:
        """Append a tombstone."""
        write = Write(encode_key(key), None)
        self._append((key[0],), (write,), CoordinatorRecord(number_of(key), key, None, None))

    def write_marker(self, marker: EndTxnMarker, producer: Producer, names: Iterable[str]) -> None:
        """Append the end of a producer's transaction. names: those whose state it changes."""
        self._append(names, (Write(*encode_control(marker), producer, is_control=True),))

    def _append(self, names: Iterable[str], writes: Sequence[Write], said: CoordinatorRecord | None = None) -> None:
        """All that is written passes here. names: of each of the records. said: see `Replay`."""
        self.writes += writes
        self._replay(self.next_offset, writes, said)
        self.next_offset += len(writes)
        for name in names:
            self._note(name)

    def _note(self, name: str) -> None:
        """Something was written for it, up to next_offset. Records in a row that belong to one name are noted once."""
        if self._written and self._written[-1][1] == name:
            self._written.pop()
        self._ends[name] = self.next_offset
        self._written.append((self.next_offset, name))

    # --- answering ---

    def is_pending(self, name: str) -> bool:
        """Something is written for it that is not committed."""
        return name in self._ends

    def answer(self, call: int, response: Any) -> None:
        """At once: it rests on nothing that is not committed."""
        self.answers.append(Answer(call, response))

    def answer_read(self, name: str, call: int, response: Any, also: str | None = None) -> None:
        """Once all that was written for the names until now is committed: a failover could undo the rest."""
        end = self._ends.get(name, self._loaded_end)
        if also is not None:
            end = max(end, self._ends.get(also, self._loaded_end))
        if end <= self.high_watermark:
            self.answer(call, response)
        else:
            self._ledger.park(end, (call, lambda: self.answer(call, response)))

    def answer_after_commit(self, call: int, response: Any) -> None:
        """Once all that was written until now is committed; at once if it is: then no commit would wake the call."""
        if self.next_offset <= self.high_watermark:
            self.answer(call, response)
        else:
            self._ledger.park(self.next_offset, (call, lambda: self.answer(call, response)))

    def after_commit(self, action: Action) -> None:
        """A step that must not happen before. It answers no call of its own: those are parked elsewhere."""
        self._ledger.park(self.next_offset, (None, action))

    def committed(self, high_watermark: Offset) -> None:
        """Run what waited for it."""
        self.high_watermark = max(self.high_watermark, high_watermark)
        while self._written and self._written[0][0] <= high_watermark:
            end, name = self._written.popleft()
            if self._ends.get(name) == end:
                del self._ends[name]
        for _, action in self._ledger.committed(high_watermark):
            action()

    def dropped_calls(self) -> list[int]:
        """The leadership has ended: the calls whose records may be lost. Nothing runs any more."""
        return [call for call, _ in self._ledger.drop() if call is not None]
