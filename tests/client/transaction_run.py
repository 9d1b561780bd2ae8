"""A transactional producer's machine against the real core of a coordinator, in one process, with calls that are lost,
late or made twice, leaders that add or verify, markers that lag, and a coordinator that moves.

Of the producer, only the machine is real; the leaders of partitions are those of the coordinator's own tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from quorumlog.client.errors import RequestFailed
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.transactions.errors import (
    FatalTransactionError,
    ProducerFenced,
    TransactionFailed,
    TransactionStateError,
)
from quorumlog.client.transactions.machine import Call, Offsets, Phase, Step, TransactionMachine
from quorumlog.client.transactions.verdicts import Verdict
from quorumlog.errors import ErrorCode as E
from quorumlog.messages.groups import OffsetCommitPartitionResult, OffsetCommitTopicResult
from quorumlog.messages.produce import InitProducerIdResponse
from quorumlog.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    TxnOffsetCommitResponse,
)
from quorumlog.settings.transactions import TransactionConfig
from tests.broker.coordinator.transaction_partitions import PartitionModel
from tests.broker.coordinator.transaction_world import TransactionWorld, X

GROUP = GroupMetadata("g", 3, "m")
PARTITIONS = [("a", 0), ("a", 1), ("b", 0)]
OFFSETS = ("__consumer_offsets", 7)
MOVED = {
    Step.INIT: InitProducerIdResponse(error_code=E.NOT_COORDINATOR),
    Step.ADD_PARTITIONS: AddPartitionsToTxnResponse(error_code=E.NOT_COORDINATOR),
    Step.ADD_GROUP: AddOffsetsToTxnResponse(error_code=E.NOT_COORDINATOR),
    Step.COMMIT: EndTxnResponse(error_code=E.NOT_COORDINATOR),
    Step.ABORT: EndTxnResponse(error_code=E.NOT_COORDINATOR),
}


@dataclass
class Work:
    """One transaction. told: committed, aborted, or None: the application does not know. values: those that were
    acknowledged. sent: all that may lie in a log."""

    values: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    asked_to_commit: bool = False
    told: bool | None = None


@dataclass
class App:
    """A process. pending: the call that it waits for, and the number of the request at the coordinator."""

    machine: TransactionMachine
    work: Work | None = None
    pending: tuple[Call, int | None] | None = None
    produce: tuple[int, Any] | None = None
    ended: bool = False


class Run:
    """faults: share of the calls that something happens to."""

    def __init__(self, seed: int, *, level: int, faults: float = 0.3) -> None:
        self.rng = Random(seed)
        self.level, self.faults = level, faults
        self.world = TransactionWorld(
            TransactionConfig(abort_interval_ms=1_000), version=level, autocommit=False, automark=False
        )
        self.partitions = {one: PartitionModel() for one in [*PARTITIONS, OFFSETS]}
        self.late: list[Callable[[], None]] = []
        self.history: list[Work] = []
        self.values = 0
        self.committed = 0  # high watermark of the coordinator's log
        self.waiting: list[tuple[int, Callable[[Any], None]]] = []  # requests at the coordinator that leaders made
        self.apps = [self.new_app()]
        self.counts = dict.fromkeys(("commits", "aborts", "unknown", "fenced", "failed", "failovers"), 0)

    def new_app(self) -> App:
        machine = TransactionMachine(X, 5_000)
        machine.level = self.level
        return App(machine)

    # --- one step ---

    def step(self) -> None:
        actions = [
            self.act,
            self.commit_some,
            self.mark,
            self.pass_time,
            self.be_late,
            self.fail_over,
            self.start_rival,
        ]
        self.rng.choices(actions, weights=[100, 60, 60, 4, 8, 2, 1])[0]()
        self.collect()

    def act(self) -> None:
        app = self.rng.choice(self.apps)
        machine = app.machine
        if app.ended or app.pending is not None or app.produce is not None:
            return
        if machine.failure is not None:
            self.count_end(app)
        elif machine.phase is Phase.READY and app.work is None:
            machine.begin()
            app.work = Work()
            self.history.append(app.work)
        elif machine.phase is Phase.OPEN and not machine.commits_offsets and not machine.adds_partitions:
            self.open_step(app)
        else:
            self.call(app)

    def open_step(self, app: App) -> None:
        machine, work = app.machine, app.work
        assert work is not None
        choice = self.rng.random()
        if machine.cause is not None or choice < 0.1:
            if self.rng.random() < 0.2 and machine.cause is not None:
                self.must_refuse_commit(machine)
            machine.begin_abort()
            self.look(app)
        elif choice < 0.6:
            self.send(app, work, self.rng.choice(PARTITIONS))
        elif choice < 0.7:
            machine.add_offsets(Offsets(GROUP, {("in", 0): 5}))
        else:
            machine.begin_commit()
            machine.flushed()
            work.asked_to_commit = True
            self.look(app)

    def must_refuse_commit(self, machine: TransactionMachine) -> None:
        try:
            machine.begin_commit()
        except TransactionFailed:
            return
        raise AssertionError("a transaction with a failed record was committed")

    def count_end(self, app: App) -> None:
        app.ended = True
        self.counts["fenced" if isinstance(app.machine.failure, ProducerFenced) else "failed"] += 1
        if app.work is not None and app.work.asked_to_commit:
            self.told(app.work, None if self.failure(app).outcome_unknown else False)
        if all(one.ended for one in self.apps):
            self.apps.append(self.new_app())

    def failure(self, app: App) -> FatalTransactionError:
        assert app.machine.failure is not None
        return app.machine.failure

    def told(self, work: Work, outcome: bool | None) -> None:
        work.told = outcome
        self.counts[{True: "commits", False: "aborts", None: "unknown"}[outcome]] += 1

    def look(self, app: App) -> None:
        """Has the transaction ended?"""
        if app.work is not None and app.machine.cause is not None:
            app.work.asked_to_commit = False  # the commit was refused: the application must abort
        if app.work is not None and app.machine.phase in (Phase.READY, Phase.UNREADY):
            self.told(app.work, app.work.asked_to_commit)
            app.work = None

    # --- calls of the producer ---

    def call(self, app: App) -> None:
        call = app.machine.next_call()
        if call is None:
            return
        if call.step is Step.COMMIT and self.rng.random() < 0.1:
            self.must_refuse_abort(app.machine)
        fate = self.rng.random() / self.faults if self.faults else 1.0
        if fate < 0.25:
            app.machine.lost(call, was_sent=False)
        elif fate < 0.45:
            app.machine.lost(call)
        elif fate < 0.65:
            self.submit(call)
            app.machine.lost(call)
        elif fate < 0.85:
            app.machine.lost(call)
            if self.level >= 2 or call.step in (Step.INIT, Step.COMMIT_OFFSETS):
                self.late.append(lambda: self.submit(call) and None)
        else:
            if fate < 1 and call.step is not Step.COMMIT_OFFSETS:  # the answer to the first try was lost
                self.submit(call)
                app.machine.lost(call)
            number = self.submit(call)
            app.pending = call, number

    def must_refuse_abort(self, machine: TransactionMachine) -> None:
        try:
            machine.begin_abort()
        except TransactionStateError:
            return
        raise AssertionError("an abort while a commit is on its way")

    def submit(self, call: Call) -> int:
        """At the coordinator. Returns its number there."""
        request = call.request
        match call.step:
            case Step.INIT:
                return self.world.call("init_producer_id", request)
            case Step.ADD_PARTITIONS:
                return self.world.call("add_partitions", request.transactions[0])
            case Step.ADD_GROUP:
                return self.world.call("add_offsets", request, OFFSETS[1])
            case Step.COMMIT_OFFSETS:
                return self.add_or_verify((request.producer_id, request.producer_epoch), OFFSETS)
            case Step.COMMIT | Step.ABORT:
                return self.world.call("end_transaction", request)

    def add_or_verify(self, producer: tuple[int, int], partition: tuple[str, int]) -> int:
        """What the leader of a partition asks before it takes the first batch of a transaction."""
        return self.world.add(
            producer, partition, verify_only=self.level < 2, transaction_version=2 if self.level >= 2 else 0
        )

    def collect(self) -> None:
        for app in self.apps:
            if app.pending is None:
                continue
            call, number = app.pending
            assert number is not None
            if number not in self.world.answers:
                continue
            app.pending = None
            self.answer(app, call, self.world.answers[number])
        due = [one for one in self.waiting if one[0] in self.world.answers]
        self.waiting = [one for one in self.waiting if one not in due]
        for number, then in due:
            then(self.world.answers[number])

    def answer(self, app: App, call: Call, answer: Any) -> None:
        machine = app.machine
        if call.step is Step.COMMIT_OFFSETS:
            machine.answered(call, self.offsets_answer(app, call, answer))
        elif answer is None:  # the coordinator has moved
            assert machine.answered(call, MOVED[call.step]) is Verdict.ELSEWHERE or machine.phase is Phase.FAILED
        elif call.step is Step.ADD_PARTITIONS:
            machine.answered(call, AddPartitionsToTxnResponse(results=(answer,)))
        else:
            machine.answered(call, answer)
        self.look(app)

    def offsets_answer(self, app: App, call: Call, answer: Any) -> TxnOffsetCommitResponse:
        """The group's coordinator appends in the transaction."""
        request, code = call.request, E.COORDINATOR_NOT_AVAILABLE
        if answer is not None:
            code = self.code_of(answer)
        if code == E.NONE and app.work is not None:
            producer = (request.producer_id, request.producer_epoch)
            self.values += 1
            model = self.partitions[OFFSETS]
            code = model.append(producer, self.values, model.guard(producer))
            if code == E.NONE:
                app.work.sent.append(self.values)
                app.work.values.append(self.values)
        part = OffsetCommitPartitionResult(index=0, error_code=code)
        return TxnOffsetCommitResponse(topics=(OffsetCommitTopicResult(name="in", partitions=(part,)),))

    def code_of(self, answer: Any) -> E:
        ((part,),) = (topic.partitions for topic in answer.topics)
        return E(part.error_code)

    # --- records ---

    def send(self, app: App, work: Work, partition: tuple[str, int]) -> None:
        machine = app.machine
        if not machine.admit(partition):
            return
        assert machine.identity is not None
        self.values += 1
        value, producer = self.values, (machine.identity.producer_id, machine.identity.epoch)
        work.sent.append(value)
        fate = self.rng.random() / self.faults if self.faults else 1.0
        if fate < 0.2:  # it comes when nobody waits for it any more
            self.late.append(lambda: self.produce(producer, partition, value, lambda _: None))
            machine.fail(RequestFailed(E.REQUEST_TIMED_OUT, "", outcome_unknown=True))
            return
        app.produce = (value, producer)

        def done(code: E) -> None:
            app.produce = None
            if code == E.NONE and fate >= 0.4:
                work.values.append(value)
            elif code == E.NONE:
                machine.fail(RequestFailed(E.REQUEST_TIMED_OUT, "", outcome_unknown=True))
            elif code.retriable:
                work.sent.remove(value)  # it was refused, and is sent again as another one
            else:
                machine.fail(RequestFailed(code, ""))

        self.produce(producer, partition, value, done)

    def produce(
        self, producer: tuple[int, int], partition: tuple[str, int], value: int, done: Callable[[E], None]
    ) -> None:
        """At the leader, by its rules: the partition joins or is verified before the first batch is appended."""
        model = self.partitions[partition]
        if model.is_open(producer):
            done(model.append(producer, value, None))
            return
        guard = model.guard(producer)

        def told(answer: Any) -> None:
            code = E.NOT_ENOUGH_REPLICAS if answer is None else self.code_of(answer)
            if code == E.NONE:
                code = model.append(producer, value, guard)
            elif code in (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH):
                code = E.INVALID_PRODUCER_EPOCH
            done(code)

        self.waiting.append((self.add_or_verify(producer, partition), told))

    # --- the cluster ---

    def commit_some(self) -> None:
        self.commit_to(self.rng.randint(self.committed, len(self.world.log)))

    def commit_to(self, end: int) -> None:
        self.committed = end
        self.world.commit_to(end)

    def mark(self) -> None:
        """Some markers are written and told."""
        for one in list(self.world.decided):
            if self.rng.random() < 0.5 or not self.faults:
                self.world.decided.remove(one)
                for partition in sorted(one.partitions):
                    code = self.partitions[partition].end(one.ending)
                    if code == E.NONE:
                        step = (one.transactional_id, one.ending.producer_epoch, partition)
                        self.world.step(self.world.shard.marker_written, *step)
                    else:
                        self.world.step(
                            self.world.shard.marker_refused, one.transactional_id, one.ending.producer_epoch
                        )
                        break

    def pass_time(self) -> None:
        self.world.pass_ms(self.rng.choice([100, 1_000, 3_000]))

    def be_late(self) -> None:
        if self.late:
            self.late.pop(self.rng.randrange(len(self.late)))()

    def fail_over(self) -> None:
        parked = self.world.shard.resigned()
        self.world.fail_over(keep=self.rng.randint(self.committed, len(self.world.log)))
        self.counts["failovers"] += 1
        for number in parked:
            self.world.answers[number] = None

    def start_rival(self) -> None:
        """A new process of the same id, while the old one may still live."""
        self.apps.append(self.new_app())

    def settle(self) -> None:
        """What is decided is committed, and every marker written."""
        for _ in range(4):
            self.commit_to(len(self.world.log))
            self.mark()
            self.collect()
