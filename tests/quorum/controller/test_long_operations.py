"""A broker with 20,000 replicas is fenced, and no other request has to wait for it.

The controller's service runs on virtual time with a log that commits some time after each append, and delivers
through the driver's own `Delivery`. A turn is one callback of the loop.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from service_world import CONTROLLER, Bench, FakeContext, FakeDriver

from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.records import Record
from quorumlog.rpc.transport import Refused
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_RECORD
from quorumlog_quorum.controller.shell.runner import MAX_RECORDS_AHEAD
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.loader import MAX_RECORDS_PER_DELTA
from quorumlog_quorum.node.committed import Delivery
from tests.rules import rule

REPLICAS = 20_000
TOPICS = 20
COMMIT_MS = 10
ROUND_MS = 11
MAX_RECORDS_PER_SLICE = ControllerConfig().max_slice_work // WORK_OF_A_RECORD + 1


class TurnsDriver(FakeDriver):
    def __init__(self, listeners: Sequence[Any]) -> None:
        super().__init__(listeners)
        self.delivery = Delivery(self, 0, listeners, self._fail)  # type: ignore[arg-type]
        self.max_ahead = 0

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        end_offset = super().append(epoch, values)
        self.max_ahead = max(self.max_ahead, end_offset - self.high_watermark)
        return end_offset

    def commit(self) -> None:
        asyncio.get_running_loop().call_later(COMMIT_MS / 1_000, self._commit, self.end_offset)

    def lead(self, epoch: Epoch) -> None:
        self.epoch, self.leads = epoch, True
        for listener in self.listeners:
            listener.on_leader_change(1, epoch, CONTROLLER)
        self._add([Record(self.end_offset, 0, b"", b"", ())], True)
        self.delivery.on_claimed(epoch, self.end_offset)
        self._commit(self.end_offset)

    def read(self, offset: Offset, max_bytes: int, upper_bound: Offset, callback: Any) -> None:
        first = bisect_left(self.batches, offset + 1, key=lambda entry: entry[1])
        callback(b"".join(batch for batch, end in self.batches[first:] if end <= upper_bound))

    def _commit(self, end_offset: Offset) -> None:
        if end_offset > self.high_watermark:
            self.high_watermark = end_offset
            self.delivery.on_high_watermark(end_offset)

    def _fail(self, error: Exception) -> None:
        raise error


class LargeBench(Bench):
    """turns: processor time of each, in ms."""

    def __init__(self) -> None:
        super().__init__(TurnsDriver)
        self.turns: list[float] = []
        self.deltas: list[int] = []
        self.transport.answer = self.alive
        self.do(lambda: self.driver.lead(1))
        self.streams = {broker_id: self.start_broker(broker_id) for broker_id in (1, 2, 3)}
        for number in range(TOPICS):
            topic = CreatableTopic(name=f"t{number}", num_partitions=REPLICAS // TOPICS, replication_factor=3)
            response = self.run(self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=60_000)))
            assert response.topics[0].error_code == ErrorCode.NONE
        self.wait(1_000)
        self.loader.subscribe(self._on_image)

    def _on_image(self, delta: Delta, image: Image) -> None:
        self.deltas.append(len(list(delta.changed_partitions())))

    def wait(self, length_ms: int) -> None:
        end_ns = self.scheduler.now_ns + length_ms * NS_PER_MS
        while (self.scheduler.next_ns() or end_ns + 1) <= end_ns:
            before = time.thread_time()
            self.scheduler.step()
            self.turns.append((time.thread_time() - before) * 1_000)
        self.scheduler.run_for(end_ns - self.scheduler.now_ns)

    def beat(self, *broker_ids: int) -> list[Any]:
        return [self.loop.create_task(self.ask(self.heartbeat(broker_id), FakeContext())) for broker_id in broker_ids]


@dataclass
class Fencing:
    """What happened while broker 1 was fenced. rounds: that the fencing took; answered: heartbeats of the others."""

    bench: LargeBench
    batches: list[int]  # records of each
    rounds: int
    answered: int


@pytest.fixture(scope="module")
def fencing() -> Iterator[Fencing]:
    """Broker 1 is proven dead; the others send a heartbeat every few milliseconds."""
    bench = LargeBench()
    bench.turns.clear()
    bench.deltas.clear()
    bench.transport.answer = lambda address: Refused() if address.port == 9001 else bench.alive(address)
    bench.do(bench.streams[1].close)
    first, rounds, answered = bench.driver.end_offset, 0, 0
    while not bench.loader.image.brokers[1].fenced:
        waiting = bench.beat(2, 3)
        bench.wait(ROUND_MS)
        if bench.driver.end_offset > first:
            rounds += 1
            answered += sum(1 for one in waiting if one.done() and not one.result().is_fenced)
        assert bench.clock.now_ms() < 60_000
    ends = [first, *(end for _, end in bench.driver.batches if end > first)]
    yield Fencing(bench, [after - before for before, after in pairwise(ends)], rounds, answered)
    bench.loop.kill()
    killed_coroutines.empty()


def counting_on(image: Image, broker_id: int) -> int:
    partitions = (partition for topic in image.topics.values() for partition in topic.partitions.values())
    return sum(1 for partition in partitions if broker_id in partition.isr)


@rule("kraft 8.14")
def test_the_broker_is_out_of_every_isr(fencing: Fencing) -> None:
    image = fencing.bench.loader.image
    assert image.brokers[1].fenced and counting_on(image, 1) == 0 and counting_on(image, 2) == REPLICAS


def test_heartbeats_of_others_are_answered_all_the_time(fencing: Fencing) -> None:
    assert fencing.rounds > 5, "the fencing takes many rounds"
    assert fencing.answered == 2 * fencing.rounds


def test_no_turn_does_more_than_its_share(fencing: Fencing) -> None:
    bench = fencing.bench
    assert sum(fencing.batches) > REPLICAS and max(fencing.batches) <= MAX_RECORDS_PER_SLICE
    assert max(bench.deltas) <= MAX_RECORDS_PER_DELTA + MAX_RECORDS_PER_SLICE
    assert bench.driver.max_ahead <= MAX_RECORDS_AHEAD + MAX_RECORDS_PER_SLICE
    turns = sorted(bench.turns)
    print(
        f"{len(turns)} turns, p99 {turns[len(turns) * 99 // 100]:.1f} ms, max {turns[-1]:.1f} ms of processor time; "
        f"{sum(turns) / REPLICAS * 1_000:.0f} us a replica"
    )
