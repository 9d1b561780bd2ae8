"""Producers that begin, write, end, die and come back in any order, while coordinators move: what must always hold.

The producers follow the protocol as real ones do, of both versions beside each other, whatever level is in force, which
changes meanwhile. Calls are answered late or never,
markers are lost, and those of an earlier coordinator arrive late. The high watermark lags behind the log of the
coordinator, and a failover cuts what is above it. Numbers in brackets are the invariants that the text of a failure
names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import (
    TransactionPartitionResult,
    TransactionTopicResult,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.transactions import TransactionStatus
from quorumlog.settings.transactions import TransactionConfig
from quorumlog_broker.coordinator.transactions.marker_lanes import Owner
from quorumlog_broker.coordinator.transactions.markers import MarkerQueues, MarkerRequest
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.table import (
    IDLE,
    MOVES,
    ONGOING,
    PREPARED,
    Partition,
    TransactionTable,
)
from quorumlog_broker.produce.transactional import EndTransaction
from quorumlog_storage.producers.verification import Guard
from tests.broker.coordinator.transaction_partitions import PartitionModel
from tests.broker.coordinator.transaction_world import TransactionWorld, replay

STEPS = 700
PARTITIONS: list[Partition] = [("a", 0), ("a", 1), ("b", 0)]
RETRY = {E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR}
FENCED = {E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_ID_MAPPING}


@dataclass
class Work:
    """One transaction. values: acknowledged ones. told: what its producer was told of its end."""

    producer: tuple[int, int]
    added: set[Partition] = field(default_factory=set)
    values: list[tuple[Partition, int]] = field(default_factory=list)
    sent: set[int] = field(default_factory=set)
    decision: bool | None = None
    told: bool | None = None
    must_abort: bool = False


@dataclass
class Client:
    """A process with a transactional id. version: 0 for TV1, 2 for TV2. call: what it waits for: kind, number, more."""

    name: str
    version: int
    producer: tuple[int, int] | None = None
    work: Work | None = None
    call: tuple[str, int, Any] | None = None
    ended: list[Work] = field(default_factory=list)
    finished: int = 0

    def forget(self) -> None:
        """Its process has ended, or it was told that it is replaced."""
        self.producer, self.work, self.call = None, None, None


class Run:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.world = TransactionWorld(TransactionConfig(abort_interval_ms=1_000), autocommit=False, automark=False)
        self.partitions = {one: PartitionModel() for one in PARTITIONS}
        self.world.version = self.rng.choice([0, 1, 2])
        self.clients = [Client(f"x{n}", 2 * (n % 2)) for n in range(4)]
        self.zombies: list[tuple[Client, Work]] = []
        self.late_ends: dict[int, tuple[Work, bool]] = {}
        self.high_watermark = 0
        self.durable = TransactionTable()  # what is committed; nothing undoes it
        self.max_pending = self.rng.choice([1, 2, 1_000, 1_000])
        self.queues = self.new_queues()
        self.requests: list[tuple[MarkerQueues | None, MarkerRequest]] = []  # None: nobody waits for the answer
        self.values = 0
        self.history: list[Work] = []
        self.late: list[tuple[int, Work, Partition, Guard | None, int]] = []  # produce calls nobody waits for
        names = (
            "commits",
            "aborts",
            "failovers",
            "time-outs",
            "fenced",
            "late",
            "lost markers",
            "rotations",
            "waits for room",
            "levels",
        )
        self.counts = dict.fromkeys(names, 0)

    def new_queues(self) -> MarkerQueues:
        return MarkerQueues(lambda *one: PARTITIONS.index(one) // 2, lambda *_: True, self.max_pending)

    @property
    def owner(self) -> Owner:
        return Owner(0, self.world.coordinator_epoch)

    # --- one step ---

    def step(self) -> None:
        action = self.rng.choices(
            [
                *(self.act, self.commit_some, self.deliver, self.pass_time, self.fail_over, self.kill, self.be_late),
                self.change_level,
            ],
            weights=[100, 60, 60, 12, 2, 2, 8, 2],
        )[0]
        action()
        self.collect()
        self.check()

    def act(self) -> None:
        client = self.rng.choice(self.clients)
        if client.call is not None:
            return
        if client.producer is None:
            client.call = ("init", self.world.init(client.name, self.rng.choice([5_000, 60_000])), None)
        elif client.work is None:
            client.work = Work(client.producer)
            self.history.append(client.work)
        elif client.work.decision is not None:
            self.end(client, client.work)
        elif not client.work.values or self.rng.random() < 0.6:
            self.write(client, client.work, self.rng.choice(PARTITIONS))
        else:
            client.work.decision = self.rng.random() < 0.7 and not client.work.must_abort
            self.end(client, client.work)

    def end(self, client: Client, work: Work) -> None:
        assert work.decision is not None
        number = self.world.end(
            work.producer, committed=work.decision, version=client.version, transactional_id=client.name
        )
        client.call = ("end", number, None)

    def write(self, client: Client, work: Work, partition: Partition) -> None:
        if client.version == 0 and partition not in work.added:
            number = self.world.add(work.producer, partition, transactional_id=client.name)
            client.call = ("add", number, partition)
            return
        self.values += 1
        sent = self.produce(client, work, partition, self.values)
        if sent is not None:
            client.call = ("produce", *sent)

    def produce(
        self, client: Client, work: Work, partition: Partition, value: int
    ) -> tuple[int, tuple[Partition, Guard | None, int]] | None:
        """At the leader of the partition. None: done. Otherwise the coordinator is asked, and the rest comes later."""
        model = self.partitions[partition]
        work.sent.add(value)
        if model.is_open(work.producer):
            assert model.append(work.producer, value, None) == E.NONE
            self.appended(work, partition, value)
            return None
        guard = model.guard(work.producer)
        number = self.world.add(
            work.producer,
            partition,
            transactional_id=client.name,
            verify_only=client.version == 0,
            transaction_version=client.version,
        )
        return number, (partition, guard, value)

    def appended(self, work: Work, partition: Partition, value: int) -> None:
        """Until the marker is here a record that comes late is one of the transaction like others."""
        producer_id, epoch = work.producer
        newer = [one for one in self.partitions[partition].entries if one.producer_epoch > epoch]
        assert all(one.producer_id != producer_id for one in newer), "[27] behind the end of its transaction"
        work.values.append((partition, value))

    def be_late(self) -> None:
        """Calls of a transaction that has ended. Without an epoch for each transaction they cannot be told apart."""
        client = self.rng.choice(self.clients)
        if self.zombies and self.rng.random() < 0.5:  # it lives, while another one has taken its place
            zombie, work = self.rng.choice(self.zombies)
            if work.decision is None:
                work.decision = not work.must_abort and self.rng.random() < 0.5
            self.counts["late"] += 1
            self.end_late(zombie, work, work.decision)
            return
        if client.version == 0 or not client.ended:
            return
        work = self.rng.choice(client.ended[-3:])
        self.counts["late"] += 1
        kind = self.rng.randrange(3)
        if kind == 0:
            self.end_late(client, work, self.rng.random() < 0.5)
        elif kind == 1:
            self.world.add(
                work.producer, self.rng.choice(PARTITIONS), transactional_id=client.name, transaction_version=2
            )
        else:
            self.values += 1
            partition = self.rng.choice(PARTITIONS)
            sent = self.produce(client, work, partition, self.values)
            if sent is not None:
                self.late.append((sent[0], work, *sent[1]))

    def end_late(self, client: Client, work: Work, committed: bool) -> None:
        number = self.world.end(
            work.producer, committed=committed, version=client.version, transactional_id=client.name
        )
        self.late_ends[number] = work, committed

    def commit_some(self) -> None:
        self.commit_to(self.rng.randint(self.high_watermark, len(self.world.log)))

    def commit_to(self, end: int) -> None:
        for write in self.world.log[self.high_watermark : end]:
            record = decode(TRANSACTION_TYPES, write.key, write.value)
            self.durable.replay(record.key.transactional_id, record.value)
        self.high_watermark = end
        self.world.commit_to(end)

    def pass_time(self) -> None:
        before = len(self.world.log)
        self.world.pass_ms(self.rng.choice([200, 1_000, 2_500]))
        self.counts["time-outs"] += len(self.world.log) - before

    def kill(self) -> None:
        client = self.rng.choice(self.clients)
        if client.work is not None and client.call is None:
            self.zombies.append((Client(client.name, client.version), client.work))
        client.forget()

    def change_level(self) -> None:
        self.world.version = self.rng.choice([0, 1, 2])
        self.counts["levels"] += 1

    def fail_over(self) -> None:
        parked = set(self.world.shard.resigned())
        waiting = {client.call[1] for client in self.clients if client.call is not None}
        assert waiting - set(self.world.answers) <= parked, "[32] a call is lost"
        self.check_replay()
        if self.rng.random() < 0.5:
            self.queues.remove(self.owner)
        else:  # another node: nobody waits for the answers any more, but requests arrive
            self.requests = [(None, request) for _, request in self.requests]
            self.max_pending = self.rng.choice([1, 2, 1_000, 1_000])
        self.queues = self.new_queues()
        self.world.fail_over(keep=self.rng.randint(self.high_watermark, len(self.world.log)))
        self.counts["failovers"] += 1
        for number in parked:
            self.world.answers[number] = None

    # --- markers ---

    def deliver(self) -> None:
        """Send what is due, and let one request of any age arrive."""
        self.requests += [(self.queues, request) for request in self.due()]
        if not self.requests:
            return
        queues, request = self.requests.pop(self.rng.randrange(len(self.requests)))
        by_epoch = all(marker.transaction_version >= 2 for marker in request.message.markers)
        fate = self.rng.random()
        if queues is not None and fate < 0.1 and by_epoch:
            self.requests.append((None, request))  # it arrives after its time-out
            queues.failed(request.number, self.world.now_ms)
        elif queues is not None and fate < 0.2:
            self.counts["lost markers"] += 1
            if fate < 0.15:
                self.written(request)
            queues.failed(request.number, self.world.now_ms)
        else:
            response = self.written(request)
            if queues is not None:
                self.answered(queues, request, response)

    def due(self) -> list[MarkerRequest]:
        """Of one slice."""
        if self.has_decided:
            self.queues.offer(self.owner, self)
        waited = self.queues.waited
        requests, results = self.queues.due(self.world.now_ms)
        assert not results
        self.counts["waits for room"] += self.queues.waited - waited
        for request in requests:
            assert sum(len(t.partitions) for one in request.message.markers for t in one.topics) <= self.max_pending
        return requests

    @property
    def has_decided(self) -> bool:
        return bool(self.world.decided)

    def take_decided(self, limit: int) -> list[DecidedTransaction]:
        found, self.world.decided = self.world.decided[:limit], self.world.decided[limit:]
        for one in found:
            before = self.durable.get(one.transactional_id)
            assert before is not None and before.transaction_status in PREPARED, "[22] a marker before the decision"
        return found

    def unconfirmed(self, transactional_id: str) -> DecidedTransaction | None:
        return self.world.shard.unconfirmed(transactional_id)

    def written(self, request: MarkerRequest) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=tuple(
                WrittenMarker(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        TransactionTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                TransactionPartitionResult(
                                    index=index,
                                    error_code=self.partitions[topic.name, index].end(
                                        EndTransaction(
                                            marker.producer_id,
                                            marker.producer_epoch,
                                            marker.committed,
                                            marker.coordinator_epoch,
                                            marker.transaction_version,
                                        )
                                    ),
                                )
                                for index in topic.partitions
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.message.markers
            )
        )

    def answered(self, queues: MarkerQueues, request: MarkerRequest, response: WriteTxnMarkersResponse) -> None:
        for result in chain.from_iterable(queues.answered(request.number, response, self.world.now_ms)):
            marker, shard = result.marker, self.world.shard
            assert result.is_written, "[32] nobody else ends the transactions of the coordinator that leads"
            step = (marker.transactional_id, marker.ending.producer_epoch, marker.partition)
            self.world.step(shard.marker_written, *step)

    # --- answers ---

    def collect(self) -> None:
        answers = self.world.answers
        for client in self.clients:
            if client.call is not None and client.call[1] in answers:
                kind, number, more = client.call
                client.call = None
                code = E.NOT_COORDINATOR if answers[number] is None else E(self.world.code(number))
                getattr(self, f"on_{kind}")(client, code, answers[number], more)
        for number in [number for number in self.late_ends if number in answers]:
            work, committed = self.late_ends.pop(number)
            if answers[number] is not None and self.world.code(number) == E.NONE:
                assert work.told in (None, committed), "[21] a late call has ended another transaction"
        for one in [one for one in self.late if one[0] in answers]:
            self.late.remove(one)
            number, work, partition, guard, value = one
            is_in = answers[number] is not None and self.world.code(number) == E.NONE
            if is_in and self.partitions[partition].append(work.producer, value, guard) == E.NONE:
                self.appended(work, partition, value)

    def on_init(self, client: Client, code: E, answer: Any, _more: None) -> None:
        if code != E.NONE:
            assert code in RETRY, code
            return
        client.producer = (answer.producer_id, answer.producer_epoch)
        told = self.durable.get(client.name)
        assert told is not None, "[3] an epoch that is not committed"
        assert (told.producer_id, told.producer_epoch) == client.producer, "[3] an epoch that is not committed"

    def on_add(self, client: Client, code: E, _answer: Any, partition: Partition) -> None:
        work = client.work
        assert work is not None
        if code == E.NONE:
            work.added.add(partition)
            self.must_have(client.name, work, partition)
        elif code in FENCED:
            self.fenced(client)
        else:
            assert code in RETRY, code

    def must_have(self, name: str, work: Work, partition: Partition) -> None:
        known = self.durable.get(name)
        assert known is not None
        if (known.producer_id, known.producer_epoch) == work.producer and known.transaction_status == ONGOING:
            assert partition in self.durable.partitions(name), "[3] a partition that is not committed"

    def on_produce(self, client: Client, code: E, _answer: Any, more: tuple[Partition, Guard | None, int]) -> None:
        work, (partition, guard, value) = client.work, more
        assert work is not None
        if code == E.NONE:
            self.must_have(client.name, work, partition)
            code = self.partitions[partition].append(work.producer, value, guard)
            if code == E.NONE:
                self.appended(work, partition, value)
        if code in FENCED:
            self.fenced(client)
        elif code in (E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE):
            work.must_abort = True
            if not work.values:
                self.fenced(client)  # nothing to end: it begins anew
        else:
            assert code == E.NONE or code in RETRY, code

    def on_end(self, client: Client, code: E, answer: Any, _more: None) -> None:
        work = client.work
        assert work is not None
        if code == E.NONE:
            work.told = work.decision
            known = self.durable.get(client.name)
            assert known is not None and known.transaction_status != ONGOING, "[22] told before it was decided"
            self.counts["commits" if work.decision else "aborts"] += 1
            if client.version >= 2:
                was, client.producer = client.producer, (answer.producer_id, answer.producer_epoch)
                assert was is not None and client.producer != was, "[27] the next transaction has the same epoch"
                self.counts["rotations"] += was[0] != client.producer[0]
            client.finished += 1
            client.ended.append(work)
            client.work = None
        elif code in FENCED or code == E.INVALID_TXN_STATE:
            self.fenced(client)
        else:
            assert code in RETRY, code

    def fenced(self, client: Client) -> None:
        self.counts["fenced"] += 1
        client.forget()

    # --- what must hold ---

    def check(self) -> None:
        live = dict(self.durable.items())
        holders = {value.producer_id: name for name, value in live.items()}
        for partition, model in self.partitions.items():
            for producer_id, _ in model.open_producers():
                name = holders.get(producer_id)
                assert name is not None, "[24] an open transaction of a producer that no coordinator knows"
                status = live[name].transaction_status
                assert status not in IDLE, "[23] a transaction is complete, and open here"
                assert partition in self.durable.partitions(name), "[24] a partition that gets no marker"

    def check_replay(self) -> None:
        """[2] What is durable follows from the log alone."""
        fresh = TransactionWorld().shard
        replay(self.world.log, fresh)
        assert dict(fresh._table.items()) == dict(self.world.shard._table.items()), "[2]"

    def check_log(self) -> None:
        before: dict[str, Any] = {}
        names: dict[int, str] = {}
        for write in self.world.log:
            record = decode(TRANSACTION_TYPES, write.key, write.value)
            name, value = record.key.transactional_id, record.value
            old = before.get(name)
            assert names.setdefault(value.producer_id, name) == name, "[30] a producer id of two transactional ids"
            status = None if old is None else TransactionStatus(old.transaction_status)
            assert value.transaction_status in MOVES[status], f"[21] {status} -> {value.transaction_status}"
            if old is not None and old.producer_id == value.producer_id:
                assert value.producer_epoch >= old.producer_epoch, "[21] an epoch falls"
            elif old is not None:
                assert value.producer_id > old.producer_id, "[30] a producer id comes back"
            before[name] = value

    def check_outcomes(self) -> None:
        """[22, 26, 28] Each transaction happened everywhere or nowhere, and as its producer was told."""
        outcomes = {partition: model.outcomes() for partition, model in self.partitions.items()}
        for work in self.history:
            found = {outcomes[partition][value] for partition, value in work.values}
            assert None not in found, "[23] a transaction is open for ever"
            assert len(found) <= 1, f"[22] torn: {work}"
            assert work.told is None or not found or found == {work.told}, f"[22] not what was told: {work}"
        acknowledged = {value for work in self.history for _, value in work.values}
        everywhere = [value for known in outcomes.values() for value in known]
        assert sorted(everywhere) == sorted(acknowledged), "[26]"

    # --- until all is well ---

    def settle(self) -> None:
        """[32] Once nothing fails any more, every producer finishes a transaction, and no other one stays open."""
        aims = {client.name: client.finished + 1 for client in self.clients}
        for _ in range(400):
            for client in self.clients:
                if client.call is None and client.finished < aims[client.name]:
                    self.finish(client)
            self.calm()
        for client in self.clients:
            assert client.finished >= aims[client.name], f"[32] {client}"
        for _ in range(100):  # what nobody ends times out
            self.world.pass_ms(1_000)
            self.calm()

    def finish(self, client: Client) -> None:
        if client.producer is None:
            client.call = ("init", self.world.init(client.name), None)
        elif client.work is None:
            client.work = Work(client.producer)
            self.history.append(client.work)
        elif client.work.decision is None and not client.work.values and not client.work.must_abort:
            self.write(client, client.work, PARTITIONS[0])
        else:
            if client.work.decision is None:
                client.work.decision = not client.work.must_abort
            self.end(client, client.work)

    def calm(self) -> None:
        self.commit_to(len(self.world.log))
        requests = self.due()
        waiting, self.requests = self.requests, []
        for queues, request in (*waiting, *((self.queues, one) for one in requests)):
            response = self.written(request)
            if queues is not None:
                self.answered(queues, request, response)
        self.commit_to(len(self.world.log))
        self.collect()
        self.check()
        self.world.pass_ms(50)


def run(seed: int, monkeypatch: pytest.MonkeyPatch) -> Run:
    if seed % 2:  # epochs run out soon
        for module in ("state.table", "state.states", "init_producer", "end", "partitions"):
            monkeypatch.setattr(f"quorumlog_broker.coordinator.transactions.{module}.LAST_EPOCH", 4)
    found = Run(seed)
    for _ in range(STEPS):
        found.step()
    return found


@pytest.mark.parametrize("seed", range(60))
def test_what_must_always_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(seed, monkeypatch)
    found.settle()
    found.check_replay()
    found.check_log()
    found.check_outcomes()


def test_the_runs_exercise_what_they_check(monkeypatch: pytest.MonkeyPatch) -> None:
    total: dict[str, int] = {}
    for seed in range(30):
        for name, count in run(seed, monkeypatch).counts.items():
            total[name] = total.get(name, 0) + count
    assert total["commits"] >= 200 and total["aborts"] >= 50 and total["rotations"] >= 20, total
    assert total["failovers"] >= 50 and total["lost markers"] >= 50 and total["late"] >= 100, total
    assert total["fenced"] >= 20 and total["time-outs"] >= 20, total
    assert total["waits for room"] >= 50 and total["levels"] >= 50, total
