"""The controller's shell on virtual time: order, answers after the commit, leadership, sessions, proofs of death."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from controller_world import registration
from service_world import CONTROLLER, SESSION_MS, Bench, FakeContext, refusal, topics

from jepsen.sim.time import killed_coroutines
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import BrokerHeartbeatRequest, RegisterBrokerResponse
from quorumlog.messages.metadata_records import RegisterBrokerRecord
from quorumlog.records import decode_batch, headers
from quorumlog.rpc.transport import Address, Answered, ProbeResult, Refused
from quorumlog_quorum.metadata.frame import decode_record
from tests.rules import rule


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


@rule("kraft 7.4")
def test_a_controller_that_is_not_active_names_the_active_one(bench: Bench) -> None:
    assert refusal(bench, bench.ask(registration(1))).code is ErrorCode.NOT_CONTROLLER
    bench.do(lambda: bench.loader.on_leader_change(2, 4, CONTROLLER))
    assert "node 2 at c:1" in refusal(bench, bench.ask(registration(1))).message


@rule("kraft 7.1")
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


def test_control_records_of_the_quorum_may_stand_between_those_of_the_controller(leader: Bench) -> None:
    """The quorum appends voter sets by itself. A broker's epoch is the offset of its record, so each one must count."""
    leader.driver.append_control(2)
    leader.start_broker(1)
    assert leader.service.tip.offset == leader.driver.end_offset
    leader.driver.auto_commit = False
    first = leader.start(leader.ask(topics("a")))
    leader.do(lambda: leader.driver.append_control(1))
    second = leader.start(leader.ask(topics("b")))
    leader.do(leader.driver.commit)
    assert leader.run(first).topics[0].error_code == leader.run(second).topics[0].error_code == 0
    assert leader.loader.image.offset == leader.service.tip.offset == leader.driver.end_offset


@rule("kraft 7.2")
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


@rule("kraft 7.3", "kraft 7.19")
def test_losing_leadership_answers_every_caller_and_forgets_the_tip(leader: Bench) -> None:
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


@rule("kraft 7.5")
def test_a_refusal_writes_nothing(leader: Bench) -> None:
    end = leader.driver.end_offset
    assert refusal(leader, leader.ask(registration(1, log_directories=()))).code is ErrorCode.INVALID_REGISTRATION
    assert leader.driver.end_offset == end


@rule("kraft 7.7")
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


class BrokerProcess:
    """A process that wants to be broker 1, on a port of its own. It registers again when it is replaced."""

    def __init__(self, bench: Bench, number: int) -> None:
        self.bench = bench
        self.address = Address("127.0.0.1", 9001 + 100 * number)
        endpoint = Endpoint(name="INTERNAL", host=self.address.host, port=self.address.port)
        self.registration = registration(1, number, endpoints=(endpoint,))
        self.epoch: int | None = None

    def turn(self) -> None:
        """Its next request: until it is registered a registration, then a heartbeat."""
        request = self.registration if self.epoch is None else self._heartbeat(self.epoch)
        try:
            response = self.bench.run(self.bench.ask(request))
        except ApiError as error:
            assert error.code in (ErrorCode.DUPLICATE_BROKER_REGISTRATION, ErrorCode.STALE_BROKER_EPOCH)
            self.epoch = None
        else:
            if isinstance(response, RegisterBrokerResponse):
                self.epoch = response.broker_epoch

    def _heartbeat(self, epoch: int) -> BrokerHeartbeatRequest:
        return replace(self.bench.heartbeat(1), broker_epoch=epoch, incarnation_id=self.registration.incarnation_id)

    def answer(self) -> ProbeResult:
        return Answered(1, self.registration.incarnation_id)


def two_processes(bench: Bench) -> list[BrokerProcess]:
    """Of one broker id; both live."""
    processes = [BrokerProcess(bench, 0), BrokerProcess(bench, 1)]
    bench.transport.answer = {process.address: process.answer() for process in processes}.__getitem__
    return processes


def test_of_two_live_processes_with_one_id_the_first_to_register_stays(leader: Bench) -> None:
    """They take turns, so each registration would come before the other's first heartbeat."""
    first, second = two_processes(leader)
    for _ in range(40):
        first.turn()
        second.turn()
        leader.wait(SESSION_MS // 10)
    assert second.epoch is None and first.epoch is not None and not leader.is_fenced(1)
    assert registrations(leader) == 1


def test_a_process_whose_predecessor_died_before_its_first_heartbeat_may_register_at_once(leader: Bench) -> None:
    first, second = two_processes(leader)
    first.turn()
    leader.wait(10)
    leader.transport.answer = lambda address: second.answer() if address == second.address else Refused()
    second.turn()
    assert second.epoch is None, "not yet proven"
    leader.wait(60)
    second.turn()
    assert second.epoch is not None and registrations(leader) == 2


def registrations(bench: Bench) -> int:
    """How many registrations the log holds."""
    found = [
        record
        for batch, _ in bench.driver.batches
        for header in headers(batch)
        if not header.is_control
        for record in decode_batch(batch, header)
    ]
    return sum(isinstance(decode_record(record.value or b""), RegisterBrokerRecord) for record in found)


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


def test_after_a_pause_waiting_heartbeats_are_handled_before_any_broker_is_fenced(leader: Bench) -> None:
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


def test_a_heartbeat_refused_by_a_full_queue_renews_the_session(leader: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    leader.start_broker(1)
    leader.wait(SESSION_MS - 100)
    monkeypatch.setattr("quorumlog_quorum.controller.shell.service.MAX_WAITING_OPERATIONS", 0)
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
