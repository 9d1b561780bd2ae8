"""An Apache Kafka as the core sees it: transactions of tasks, the driver's ids, and the topic of decisions.

level: of transaction.version. With 2 each end raises the epoch; before that only an expiry and a fencing do, and the
errors differ likewise, as in 4.3.1 and 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode as E
from quorumlog.spark.write.kafka.calls import DRIVER_TIMEOUT_MS
from quorumlog.spark.write.kafka.core import RunOver
from quorumlog.spark.write.kafka.decisions import Decision, decode_decision, encode_decision
from quorumlog.spark.write.kafka.steps import (
    Commit,
    Describe,
    Described,
    Drop,
    End,
    Fate,
    Fates,
    Fence,
    ListOpen,
    Now,
    Read,
    Step,
    Steps,
    TakeOver,
    Verdict,
    Wait,
    Write,
    verdict_of,
)
from quorumlog.spark.write.sending.delivery import Written

T = TypeVar("T")
ENDS = {"PrepareCommit": "CompleteCommit", "PrepareAbort": "CompleteAbort"}
FATES = {"CompleteCommit": Fate.COMMITTED, "CompleteAbort": Fate.ABORTED}


@dataclass(slots=True)
class Txn:
    """fate: of its only transaction, as its markers tell; OPEN also before there is one."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    epoch: int = 0
    state: str = "Empty"
    started_at_ms: int = -1
    first_epoch: int = 0
    fate: Fate = Fate.OPEN
    written: list[Written] = field(default_factory=list)
    rows: list[object] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A record of the topic. state: open, committed or aborted."""

    group: str
    decision: Decision | None
    state: str
    epoch: int
    began_at_ms: int


@dataclass(slots=True)
class Driver:
    """A process. epoch: of its transactional id; -1: it has not asked."""

    epoch: int = -1
    entry: Entry | None = None


class FakeKafka:
    def __init__(self, level: int = 2) -> None:
        self.level = level
        self.now_ms = 1_000_000
        self.txns: dict[str, Txn] = {}
        self.log: list[Entry] = []
        self.driver_epochs: dict[str, int] = {}
        self.offsets: dict[tuple[str, int], int] = {}
        self.fenced: list[str] = []

    # --- tasks ---

    def begin(self, transactional_id: str, timeout_ms: int) -> Txn:
        assert transactional_id not in self.txns, "each attempt has an id of its own"
        txn = Txn(transactional_id, len(self.txns) + 1, timeout_ms)
        self.txns[transactional_id] = txn
        return txn

    def write(self, txn: Txn, epoch: int, row: object, topic: str = "t", partition: int = 0) -> bool:
        """False: the producer is fenced, or its transaction is over."""
        if epoch != txn.epoch or txn.state not in ("Empty", "Ongoing"):
            return False
        if txn.state == "Empty":
            txn.state, txn.started_at_ms, txn.first_epoch = "Ongoing", self.now_ms, epoch
        offset = self.offsets.get((topic, partition), 0)
        self.offsets[topic, partition] = offset + 1
        txn.written.append(Written(topic=topic, partition=partition, first=offset, last=offset))
        txn.rows.append(row)
        return True

    # --- time ---

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        for txn in self.txns.values():
            if txn.state == "Ongoing" and self.now_ms > txn.started_at_ms + txn.timeout_ms:
                self._prepare(txn, commits=False)
                txn.epoch += 1
        for entry in self.log:
            if entry.state == "open" and self.now_ms > entry.began_at_ms + DRIVER_TIMEOUT_MS:
                entry.state = "aborted"
                self.driver_epochs[entry.group] += 1

    def write_markers(self) -> None:
        for txn in self.txns.values():
            if txn.state in ENDS:
                txn.state = ENDS[txn.state]
                txn.fate = FATES[txn.state]

    def _prepare(self, txn: Txn, *, commits: bool) -> None:
        txn.state = "PrepareCommit" if commits else "PrepareAbort"

    # --- calls ---

    def end(self, transactional_id: str, producer_id: int, epoch: int, *, commits: bool) -> E:
        txn = self.txns.get(transactional_id)
        if txn is None or txn.producer_id != producer_id:
            return E.INVALID_PRODUCER_ID_MAPPING
        of_end = epoch + 1 if self.level >= 2 else epoch
        if txn.state == "Ongoing" and txn.epoch == epoch:
            self._prepare(txn, commits=commits)
            txn.epoch = of_end
            return E.NONE
        if txn.epoch not in (epoch, of_end):
            return E.INVALID_PRODUCER_EPOCH if self.level >= 2 else E.PRODUCER_FENCED
        if txn.state in ENDS:
            asked = "PrepareCommit" if commits else "PrepareAbort"
            return E.CONCURRENT_TRANSACTIONS if txn.state == asked else E.INVALID_TXN_STATE
        asked = "CompleteCommit" if commits else "CompleteAbort"
        return E.NONE if txn.state == asked else E.INVALID_TXN_STATE

    def fence(self, transactional_id: str) -> None:
        txn = self.txns[transactional_id]
        self.fenced.append(transactional_id)
        if txn.state == "Ongoing":
            self._prepare(txn, commits=False)
            self.write_markers()
        elif txn.state in ENDS:
            self.write_markers()
        txn.epoch += 1

    def open_ids(self, prefix: str) -> list[str]:
        return [one for one, txn in self.txns.items() if txn.state == "Ongoing" and one.startswith(prefix)]

    # --- the topic ---

    def last(self, group: str) -> Decision | None:
        """Of what no open transaction hides."""
        stable = next((at for at, one in enumerate(self.log) if one.state == "open"), len(self.log))
        found = [one.decision for one in self.log[:stable] if one.group == group and one.state == "committed"]
        last = found[-1] if found else None
        return None if last is None else decode_decision(encode_decision(last))

    def must_wait(self, step: Step) -> bool:
        """A read waits for the last stable offset."""
        return isinstance(step, Read) and step.patient and any(one.state == "open" for one in self.log)

    def do(self, driver: Driver, step: Step, lost: Callable[[str], bool] = lambda name: False) -> object:
        """The answer. lost: of a transactional id, whether the answer to its EndTxn is lost."""
        match step:
            case TakeOver(group):
                self._abort_open(group)
                self.driver_epochs[group] = driver.epoch = self.driver_epochs.get(group, -1) + 1
            case Read(group, _):
                assert not self.must_wait(step)
                return self.last(group)
            case Write(group, decision):
                self._check_driver(driver, group)
                assert driver.entry is None, "one transaction at a time"
                driver.entry = Entry(group, decision, "open", driver.epoch, self.now_ms)
                self.log.append(driver.entry)
            case Commit():
                entry, driver.entry = driver.entry, None
                assert entry is not None
                self._check_driver(driver, entry.group)
                if entry.state == "aborted":
                    raise RunOver("its own transaction took too long")
                entry.state = "committed"
            case Drop():
                if driver.entry is not None and driver.entry.state == "open":
                    driver.entry.state = "aborted"
                driver.entry = None
            case Describe(names):
                return {name: self._described(name) for name in names if name in self.txns}
            case End(children, commit):
                answers = {}
                for one in children:
                    code = self.end(one.transactional_id, one.producer_id, one.producer_epoch, commits=commit)
                    is_lost = lost(one.transactional_id)
                    answers[one.transactional_id] = Verdict.AGAIN if is_lost else verdict_of(code)
                return answers
            case Fates(children):
                return {one.transactional_id: self.txns[one.transactional_id].fate for one in children}
            case ListOpen(prefix):
                return self.open_ids(prefix)
            case Fence(names):
                for name in names:
                    self.fence(name)
            case Now():
                return self.now_ms
            case Wait(ms):
                self.pass_ms(ms)
                self.write_markers()
        return None

    def _described(self, name: str) -> Described:
        txn = self.txns[name]
        return Described(
            state=txn.state,
            producer_id=txn.producer_id,
            producer_epoch=txn.epoch,
            started_at_ms=txn.started_at_ms,
            timeout_ms=txn.timeout_ms,
        )

    def _abort_open(self, group: str) -> None:
        for entry in self.log:
            if entry.group == group and entry.state == "open":
                entry.state = "aborted"

    def _check_driver(self, driver: Driver, group: str) -> None:
        if self.driver_epochs.get(group) != driver.epoch:
            raise RunOver("another start has taken over")


def step_through(
    kafka: FakeKafka, driver: Driver, steps: Steps[T], upto: int | None = None, before: type | None = None
) -> T:
    """Carry the steps out; what the core returns, or raises. upto, before: die before the step of this number, or
    before the first one of this kind; then Killed is raised."""
    answer: object = None
    error: QuorumlogError | None = None
    count = 0
    while True:
        try:
            step = steps.throw(error) if error is not None else steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        if count == upto or (before is not None and isinstance(step, before)):
            raise Killed(step)
        count += 1
        answer, error = None, None
        try:
            answer = kafka.do(driver, step)
        except QuorumlogError as raised:
            error = raised


class Killed(Exception):
    def __init__(self, step: Step) -> None:
        super().__init__(f"before {type(step).__name__}")
        self.step = step


def rows_of(kafka: FakeKafka, fate: Fate) -> list[object]:
    kafka.write_markers()
    return [row for txn in _sorted(kafka.txns.values()) if txn.fate is fate for row in txn.rows]


def _sorted(txns: Iterable[Txn]) -> list[Txn]:
    return sorted(txns, key=lambda one: one.transactional_id)
