"""The controller's shell on virtual time: order, answers after the commit, leadership, sessions, proofs of death."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest
from controller_world import CLUSTER, registration

from jepsen.sim import killed_coroutines
from jepsen.sim.clock import SimClock
from jepsen.sim.loop import SimLoop
from jepsen.sim.scheduler import NS_PER_MS, Scheduler
from quorum.controller.config import ControllerConfig
from quorum.controller.service import ControllerService
from quorum.metadata.frame import decode_record
from quorum.metadata.loader import MetadataLoader
from quorum.raft.events import NotLeader
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorumlog.nursery import Nursery
from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.rpc.transport import Address, Answered, ProbeResult, Refused

SESSION_MS = 3_000
CONTROLLER = Endpoint(name="INTERNAL", host="c", port=1)


class FakeDriver:
    """A log in memory. Appended batches are committed by `commit`, at once while `auto_commit` is on."""

    def __init__(self, listeners: Sequence[Any]) -> None:
        self.listeners = listeners
        self.epoch: Epoch = -1
        self.leads = False
        self.auto_commit = True
        self.high_watermark: Offset = 0
        self.batches: list[tuple[bytes, Offset]] = []
        self.delivered = 0

    @property
    def end_offset(self) -> Offset:
        return self.batches[-1][1] if self.batches else 0

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        if not self.leads or epoch != self.epoch:
            raise NotLeader(epoch, 2, self.epoch)
        self._add([Record(self.end_offset + i, 0, None, value, ()) for i, value in enumerate(values)], False)
        if self.auto_commit:
            self.commit()
        return self.end_offset

    def commit(self) -> None:
        self.high_watermark = self.end_offset
        for listener in self.listeners:
            listener.on_high_watermark(self.high_watermark)
        while self.delivered < len(self.batches):
            batch, end = self.batches[self.delivered]
            self.delivered += 1
            for listener in self.listeners:
                for _ in listener.on_committed(batch, end) or ():
                    pass

    def lead(self, epoch: Epoch) -> None:
        self.epoch, self.leads = epoch, True
        self._add([Record(self.end_offset, 0, b"", b"", ())], True)
        self.commit()
        for listener in self.listeners:
            listener.on_claim(epoch, self.end_offset)

    def lose(self) -> None:
        self.leads = False
        for listener in self.listeners:
            listener.on_leader_change(2, self.epoch + 1, CONTROLLER)
        for listener in self.listeners:
            listener.on_resign(self.epoch)

    def _add(self, records: list[Record], control: bool) -> None:
        base = records[0].offset
        batch = bytes(encode_batch(records, base_offset=base, leader_epoch=self.epoch, control=control))
        self.batches.append((batch, headers(batch)[-1].next_offset))


class FakeTransport:
    """answer: what the next probe finds."""

    def __init__(self) -> None:
        self.answer: Callable[[Address], ProbeResult] = lambda address: Refused()
        self.probed: list[Address] = []

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        self.probed.append(address)
        return self.answer(address)

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Any:
        raise AssertionError("a controller calls nobody")

    async def listen(self, listener: Any, handler: Any) -> Any:
        raise AssertionError("the node listens")


class FakeContext:
    peer = None

    def __init__(self) -> None:
        self.closed: list[Callable[[], None]] = []

    def on_closed(self, callback: Callable[[], None]) -> None:
        self.closed.append(callback)

    def close(self) -> None:
        for callback in self.closed:
            callback()


class Bench:
    """One node's controller, on a loop of virtual time."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(seed=1)
        self.loop = SimLoop(self.scheduler, "a")
        self.clock = SimClock(self.scheduler)
        self.transport = FakeTransport()
        self.loader = MetadataLoader()
        self.service = ControllerService(
            node_id=1,
            cluster_id=CLUSTER,
            config=ControllerConfig(broker_session_timeout_ms=SESSION_MS),
            clock=self.clock,
            rng=random.Random(1),
            transport=self.transport,  # type: ignore[arg-type]
            nursery=Nursery(self._crash),
            loader=self.loader,
        )
        self.driver = FakeDriver([self.loader, self.service])
        self.service.driver = self.driver

    def _crash(self, name: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    def do(self, action: Callable[[], Any]) -> Any:
        """Run `action` on the loop."""

        async def call() -> Any:
            return action()

        return self.loop.run_until_complete(call())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Let a call run to its first wait."""
        task = self.loop.create_task(coroutine)
        self.wait(1)
        return task

    def wait(self, length_ms: int) -> None:
        self.scheduler.run_for(length_ms * NS_PER_MS)

    def ask(self, request: Any, context: FakeContext | None = None) -> Coroutine[Any, Any, Any]:
        return self.service.handle(context or FakeContext(), request)  # type: ignore[arg-type]

    def heartbeat(self, broker_id: NodeId) -> BrokerHeartbeatRequest:
        broker = self.service.tip.brokers[broker_id]
        return BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=broker.broker_epoch,
            current_metadata_offset=self.driver.end_offset,
            want_fence=False,
            want_shutdown=False,
            incarnation_id=broker.incarnation_id,
        )

    def start_broker(self, broker_id: NodeId) -> FakeContext:
        """Registered, unfenced; the stream that it heartbeats on."""
        context = FakeContext()
        self.run(self.ask(registration(broker_id)))
        response = self.run(self.ask(self.heartbeat(broker_id), context))
        assert isinstance(response, BrokerHeartbeatResponse) and not response.is_fenced
        return context

    def alive(self, address: Address) -> ProbeResult:
        """Every registered broker answers."""
        return Answered(address.port - 9000, registration(address.port - 9000).incarnation_id)

    def is_fenced(self, broker_id: NodeId) -> bool:
        return self.loader.committed_image.brokers[broker_id].fenced


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.loop.kill()
    killed_coroutines.empty()


@pytest.fixture
def leader(bench: Bench) -> Bench:
    bench.transport.answer = bench.alive
    bench.do(lambda: bench.driver.lead(1))
    return bench


def topics(*names: str, timeout_ms: int = 1_000) -> CreateTopicsRequest:
    wanted = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=wanted, timeout_ms=timeout_ms)


def refusal(bench: Bench, awaited: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        bench.loop.run_until_complete(awaited)
    return raised.value


def test_who_is_not_active_says_who_is(bench: Bench) -> None:
    assert refusal(bench, bench.ask(registration(1))).code is ErrorCode.NOT_CONTROLLER
    bench.do(lambda: bench.loader.on_leader_change(2, 4, CONTROLLER))
    assert "node 2 at c:1" in refusal(bench, bench.ask(registration(1))).message


def test_an_answer_leaves_when_its_records_are_committed(leader: Bench) -> None:
    leader.start_broker(1)
    leader.driver.auto_commit = False
    writing = leader.start(leader.ask(topics("t")))
    reading = leader.start(leader.ask(topics("t")))  # refused: it exists, in a tip that may yet vanish
    assert "t" in leader.service.tip.topic_ids and "t" not in leader.loader.image.topic_ids
    leader.wait(100)
    assert not writing.done() and not reading.done()
    leader.do(leader.driver.commit)
    assert leader.run(writing).topics[0].error_code == 0
    assert leader.run(reading).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_operations_take_effect_in_the_order_of_their_calls(leader: Bench) -> None:
    leader.start_broker(1)
    leader.driver.auto_commit = False
    first = len(leader.driver.batches)
    calls = [leader.loop.create_task(leader.ask(topics(name))) for name in ("c", "a", "b")]
    leader.wait(1)
    written = [batch for batch, _ in leader.driver.batches[first:]]
    assert [names(batch) for batch in written] == ["c", "a", "b"]
    leader.do(leader.driver.commit)
    assert all(leader.run(call).topics[0].error_code == 0 for call in calls)


def names(batch: bytes) -> str:
    """The topic that a batch creates."""
    (header,) = headers(batch)
    value = decode_batch(batch, header)[0].value
    assert value is not None
    return str(getattr(decode_record(value), "name", ""))


def test_losing_leadership_answers_everybody_and_forgets_the_tip(leader: Bench) -> None:
    leader.start_broker(1)
    leader.driver.auto_commit = False
    writing = leader.start(leader.ask(topics("t")))
    leader.do(leader.driver.lose)
    assert refusal(leader, writing).code is ErrorCode.REQUEST_TIMED_OUT, "it may survive"
    assert not leader.service.active and not leader.service.tip.topic_ids
    assert refusal(leader, leader.ask(topics("u"))).code is ErrorCode.NOT_CONTROLLER


def test_an_append_that_finds_leadership_gone_is_answered_so(leader: Bench) -> None:
    leader.start_broker(1)
    leader.driver.leads = False
    assert refusal(leader, leader.ask(topics("t"))).code is ErrorCode.NOT_CONTROLLER
    assert not leader.service.active


def test_a_commit_that_does_not_come_times_out(leader: Bench) -> None:
    leader.start_broker(1)
    leader.driver.auto_commit = False
    start_ms = leader.clock.now_ms()
    error = refusal(leader, leader.ask(topics("t", timeout_ms=700)))
    assert error.code is ErrorCode.REQUEST_TIMED_OUT and leader.clock.now_ms() - start_ms == 700
    leader.do(leader.driver.commit)
    assert "t" in leader.loader.image.topic_ids, "it was carried out all the same"


def test_a_refusal_writes_nothing(leader: Bench) -> None:
    end = leader.driver.end_offset
    assert refusal(leader, leader.ask(registration(1, log_directories=()))).code is ErrorCode.INVALID_REGISTRATION
    assert leader.driver.end_offset == end


def test_a_no_op_is_written_when_nothing_else_is_and_never_on_top_of_one_that_waits(leader: Bench) -> None:
    end = leader.driver.end_offset
    leader.wait(499)
    assert leader.driver.end_offset == end
    leader.wait(1_101)
    assert leader.driver.end_offset == end + 3
    leader.driver.auto_commit = False
    leader.wait(2_000)
    assert leader.driver.end_offset == end + 4


def test_a_silent_broker_is_fenced_when_its_session_ends(leader: Bench) -> None:
    leader.start_broker(1)
    leader.wait(SESSION_MS - 10)
    assert not leader.is_fenced(1)
    leader.wait(20)
    assert leader.is_fenced(1)


def test_a_broker_whose_process_is_gone_is_fenced_at_once(leader: Bench) -> None:
    stream = leader.start_broker(1)
    leader.wait(10)
    leader.transport.answer = lambda address: Refused()
    leader.do(stream.close)
    leader.wait(45)
    assert not leader.is_fenced(1)
    leader.wait(10)
    assert leader.is_fenced(1)
    assert leader.run(leader.ask(registration(1, 1))).broker_epoch > 0, "the next process need not wait"


def test_a_broker_that_only_lost_its_stream_is_not_fenced(leader: Bench) -> None:
    first = leader.start_broker(1)
    leader.wait(10)
    second = FakeContext()
    leader.run(leader.ask(leader.heartbeat(1), second))
    probes = len(leader.transport.probed)
    leader.do(first.close)
    leader.wait(100)
    assert len(leader.transport.probed) == probes, "it heartbeats elsewhere already"
    leader.do(second.close)
    leader.wait(500)
    assert len(leader.transport.probed) > probes and not leader.is_fenced(1)


def test_a_new_controller_that_reached_a_broker_before_proves_its_death_in_less_than_half_a_second(
    leader: Bench,
) -> None:
    leader.start_broker(1)
    leader.start_broker(2)
    leader.wait(10)
    leader.do(leader.driver.lose)
    dead = Address("127.0.0.1", 9001)
    leader.transport.answer = lambda address: Refused() if address == dead else leader.alive(address)
    leader.do(lambda: leader.driver.lead(3))
    leader.run(leader.ask(leader.heartbeat(2)))
    leader.wait(360)
    assert (leader.is_fenced(1), leader.is_fenced(2)) == (True, False)


def test_a_wrongly_fenced_broker_is_back_with_its_next_heartbeat_and_left_alone(leader: Bench) -> None:
    stream = leader.start_broker(1)
    leader.wait(10)
    leader.transport.answer = lambda address: Refused()  # a lie
    leader.do(stream.close)
    leader.wait(60)
    assert leader.is_fenced(1)
    stream = FakeContext()
    assert not leader.run(leader.ask(leader.heartbeat(1), stream)).is_fenced
    leader.do(stream.close)
    leader.wait(1_000)
    assert not leader.is_fenced(1)


def test_after_a_pause_heartbeats_that_wait_are_heard_before_anybody_is_fenced(leader: Bench) -> None:
    leader.start_broker(1)
    leader.loop.pause()
    leader.wait(2 * SESSION_MS)
    leader.loop.resume()
    leader.wait(100)
    assert not leader.is_fenced(1)
    leader.run(leader.ask(leader.heartbeat(1)))
    leader.wait(1_000)
    assert not leader.is_fenced(1)


def test_a_broker_whose_heartbeat_waits_for_a_commit_is_alive(leader: Bench) -> None:
    """Commits stall for longer than a session, and the broker asks again only when it has been answered."""
    leader.start_broker(1)
    leader.wait(SESSION_MS - 100)
    leader.driver.auto_commit = False
    writing = leader.start(leader.ask(topics("t", timeout_ms=60_000)))
    waiting = leader.start(leader.ask(leader.heartbeat(1)))
    leader.wait(SESSION_MS + 500)
    assert not writing.done() and not waiting.done()
    leader.do(leader.driver.commit)
    leader.wait(SESSION_MS - 10)
    assert not leader.run(waiting).is_fenced and not leader.is_fenced(1), "the next one comes after the answer"
    leader.driver.auto_commit = True
    leader.wait(20)
    assert leader.is_fenced(1), "but it did not come"


def test_a_heartbeat_waits_no_longer_than_any_commit_is_waited_for(leader: Bench) -> None:
    leader.start_broker(1)
    leader.driver.auto_commit = False
    leader.start(leader.ask(topics("t", timeout_ms=60_000)))
    waiting = leader.start(leader.ask(leader.heartbeat(1)))
    leader.wait(leader.service.config.commit_timeout_ms + SESSION_MS - 10)
    leader.do(leader.driver.commit)
    assert refusal(leader, waiting).code is ErrorCode.REQUEST_TIMED_OUT and not leader.is_fenced(1)
    leader.driver.auto_commit = True
    leader.wait(20)
    assert leader.is_fenced(1), "it was silent for a session"


def test_a_dead_process_is_fenced_at_once_though_its_heartbeat_waits(leader: Bench) -> None:
    stream = leader.start_broker(1)
    leader.wait(10)
    leader.driver.auto_commit = False
    leader.start(leader.ask(topics("t")))
    leader.start(leader.ask(leader.heartbeat(1), stream))
    leader.transport.answer = lambda address: Refused()
    leader.do(stream.close)
    leader.wait(60)
    leader.do(leader.driver.commit)
    assert leader.is_fenced(1)
    leader.driver.auto_commit = True
    assert leader.run(leader.ask(registration(1, 1))).broker_epoch > 0, "the next process need not wait"


def test_a_heartbeat_that_is_refused_for_want_of_room_is_heard(leader: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    leader.start_broker(1)
    leader.wait(SESSION_MS - 100)
    monkeypatch.setattr("quorum.controller.service.MAX_WAITING_OPERATIONS", 0)
    assert refusal(leader, leader.ask(leader.heartbeat(1))).code is ErrorCode.REQUEST_TIMED_OUT
    monkeypatch.undo()
    leader.wait(SESSION_MS - 100)
    assert not leader.is_fenced(1)


def test_a_stopped_controller_answers_and_does_nothing(leader: Bench) -> None:
    leader.start_broker(1)
    leader.driver.auto_commit = False
    writing = leader.start(leader.ask(topics("t")))
    leader.run(leader.service.stop())
    assert refusal(leader, writing).code is ErrorCode.REQUEST_TIMED_OUT, "it may survive"
    end = leader.driver.end_offset
    leader.wait(2 * SESSION_MS)
    assert leader.driver.end_offset == end
    assert refusal(leader, leader.ask(registration(2))).code is ErrorCode.NOT_CONTROLLER
