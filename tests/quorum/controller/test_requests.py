"""The table of requests, and what the service makes of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest
from controller_world import registration
from service_world import SESSION_MS, Bench, FakeContext, refusal, topics

from jepsen.sim.time import killed_coroutines
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.controller import (
    AllocateProducerIdsRequest,
    AssignReplicasToDirectoriesRequest,
    BrokerHeartbeatRequest,
    DirectoryAssignment,
)
from quorumlog.messages.quorum import DescribeQuorumRequest
from quorumlog.rpc.transport import Identity
from quorumlog_quorum.controller.requests.requests import RULES, Asker, Deadline, Rule
from quorumlog_quorum.controller.shell.runner import MAX_RECORDS_AHEAD
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE

Make = Callable[..., Bench]


@pytest.fixture
def make() -> Iterator[Make]:
    """Active controllers, with broker 1 started."""
    made: list[Bench] = []

    def make_one(**config: Any) -> Bench:
        bench = Bench(**config)
        made.append(bench)
        bench.transport.answer = bench.alive
        bench.do(lambda: bench.driver.lead(1))
        bench.start_broker(1)
        return bench

    yield make_one
    for bench in made:
        bench.loop.kill()
    killed_coroutines.empty()


def names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


@pytest.mark.parametrize("rule", RULES.values(), ids=[kind.__name__ for kind in RULES])
def test_each_row_fits_its_request(rule: Rule) -> None:
    assert "error_code" in names(rule.response)
    assert (rule.asker is Asker.BROKER) <= ("broker_id" in names(rule.request))
    assert (rule.deadline is Deadline.REQUESTED) == ("timeout_ms" in names(rule.request))
    assert rule.retry_safe or rule.asker is Asker.CLIENT, "a broker goes on to the next controller by itself"


class NodeContext(FakeContext):
    def __init__(self, node_id: int) -> None:
        super().__init__()
        self.peer = Identity(cluster_id="cluster", node_id=node_id, incarnation_id=bytes(16), secret=b"s")  # type: ignore[assignment]


def test_a_broker_speaks_for_itself_only(make: Make) -> None:
    bench = make()
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=bench.service.tip.brokers[1].broker_epoch)
    assert refusal(bench, bench.ask(request, NodeContext(2))).code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert refusal(bench, bench.ask(registration(3), NodeContext(2))).code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert bench.run(bench.ask(request, NodeContext(1))).count > 0
    assert bench.run(bench.ask(topics("t"), NodeContext(2))).topics[0].error_code == ErrorCode.NONE


def test_a_request_that_is_no_controller_s_is_refused(make: Make) -> None:
    bench = make()
    assert refusal(bench, bench.ask(DescribeQuorumRequest())).code is ErrorCode.INVALID_REQUEST


def heartbeat(bench: Bench) -> BrokerHeartbeatRequest:
    return bench.heartbeat(1)


def settings(_bench: Bench) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name="retention.ms", operation=0, value="5")
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="t", configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


def one_topic(_bench: Bench) -> CreateTopicsRequest:
    return topics("u", timeout_ms=700)


ASKED = [  # (what, request, told when leadership is lost, longest wait)
    ("a heartbeat", heartbeat, ErrorCode.NOT_CONTROLLER, 5_000),
    ("a change of settings", settings, ErrorCode.REQUEST_TIMED_OUT, 5_000),
    ("a new topic", one_topic, ErrorCode.REQUEST_TIMED_OUT, 700),
]


@pytest.mark.parametrize(("request_of", "code"), [case[1:3] for case in ASKED], ids=[case[0] for case in ASKED])
def test_the_error_of_lost_leadership_is_that_of_the_table(
    make: Make, request_of: Callable[[Bench], Any], code: ErrorCode
) -> None:
    bench = make()
    bench.run(bench.ask(topics("t")))
    bench.driver.auto_commit = False
    bench.start(bench.ask(topics("v")))  # a record to wait for
    waiting = bench.start(bench.ask(request_of(bench)))
    assert not waiting.done()
    bench.do(bench.driver.lose)
    assert refusal(bench, waiting).code is code


@pytest.mark.parametrize(("request_of", "limit_ms"), [case[1::2] for case in ASKED], ids=[case[0] for case in ASKED])
def test_an_answer_is_waited_for_as_long_as_the_table_says(
    make: Make, request_of: Callable[[Bench], Any], limit_ms: int
) -> None:
    bench = make()
    bench.run(bench.ask(topics("t")))
    bench.driver.auto_commit = False
    bench.start(bench.ask(topics("v")))
    start_ms = bench.clock.now_ms()
    assert refusal(bench, bench.ask(request_of(bench))).code is ErrorCode.REQUEST_TIMED_OUT
    assert bench.clock.now_ms() - start_ms == limit_ms


def test_a_long_operation_does_not_run_ahead_of_its_commit(make: Make) -> None:
    bench = make()
    large = CreatableTopic(name="large", num_partitions=2 * MAX_RECORDS_AHEAD, replication_factor=1)
    bench.run(bench.ask(CreateTopicsRequest(topics=(large,), timeout_ms=60_000)))
    bench.driver.auto_commit = False
    fencing = bench.service._core.fencing(1)
    assert fencing is not None
    bench.do(lambda: bench.service._runner.submit(fencing))
    bench.wait(50)
    ahead = bench.driver.end_offset - bench.driver.high_watermark
    assert MAX_RECORDS_AHEAD < ahead < MAX_RECORDS_AHEAD + 300 and not bench.service.tip.brokers[1].fenced
    bench.do(bench.driver.commit)
    bench.wait(50)
    assert bench.driver.end_offset - bench.driver.high_watermark < MAX_RECORDS_AHEAD + 300
    bench.do(bench.driver.commit)
    bench.wait(50)
    assert bench.service.tip.brokers[1].fenced


def begin_long_fencing(bench: Bench) -> None:
    """Begin the fencing of broker 1; it stops after its first slices, because nothing is committed any more."""
    large = CreatableTopic(name="large", num_partitions=2 * MAX_RECORDS_AHEAD, replication_factor=1)
    bench.run(bench.ask(CreateTopicsRequest(topics=(large,), timeout_ms=60_000)))
    bench.driver.auto_commit = False
    fencing = bench.service._core.fencing(1)
    assert fencing is not None
    bench.do(lambda: bench.service._runner.submit(fencing))
    bench.wait(20)
    assert not bench.service.tip.brokers[1].fenced


def test_a_heartbeat_that_waits_for_the_fencing_of_its_broker_renews_the_session(make: Make) -> None:
    bench = make()
    begin_long_fencing(bench)
    waiting = bench.start(bench.ask(bench.heartbeat(1)))
    session = bench.service._core.sessions
    assert not waiting.done() and session.is_valid(1, bench.clock.now_ms() + 2 * SESSION_MS), "it waits here"
    bench.driver.auto_commit = True
    bench.do(bench.driver.commit)
    assert not bench.run(waiting).is_fenced


def test_a_registration_whose_caller_is_gone_is_not_begun(make: Make) -> None:
    bench = make()
    begin_long_fencing(bench)
    waiting = bench.start(bench.ask(registration(1, 1)))
    waiting.cancel()
    bench.wait(1)
    bench.driver.auto_commit = True
    bench.do(bench.driver.commit)
    bench.wait(100)
    broker = bench.service.tip.brokers[1]
    assert broker.fenced and broker.incarnation_id == registration(1).incarnation_id


def test_a_resigned_controller_drops_operations_under_way_and_answers_waiting_callers(make: Make) -> None:
    bench = make()
    begin_long_fencing(bench)
    waiting = bench.start(bench.ask(registration(1, 1)))
    bench.do(bench.driver.lose)
    assert refusal(bench, waiting).code is ErrorCode.NOT_CONTROLLER
    end = bench.driver.end_offset
    bench.wait(100)
    assert bench.driver.end_offset == end and len(bench.service._core.queue) == 0


def test_a_session_that_ends_during_an_operation_on_its_broker_is_noticed_right_after_it(make: Make) -> None:
    bench = make(metadata_max_idle_interval_ms=0)  # no other timer
    bench.wait(SESSION_MS - 100)
    begin_long_assignment(bench)
    bench.wait(300)
    assert not bench.service.tip.brokers[1].fenced, "an operation on it is under way"
    bench.driver.auto_commit = True
    bench.do(bench.driver.commit)
    bench.wait(200)
    assert bench.service.tip.brokers[1].fenced


def begin_long_assignment(bench: Bench) -> None:
    """Begin an assignment of broker 1; it stops after its first slices, because nothing is committed any more."""
    bench.driver.auto_commit = False
    create = bench.ask(topics("t", timeout_ms=60_000))
    bench.start(create)
    topic = bench.service.tip.topic("t")
    assert topic is not None
    count = MAX_RECORDS_AHEAD + 200
    wanted = tuple(
        DirectoryAssignment(topic_id=topic.id, index=0, directory_id=(2_000 + number).to_bytes(16, "big"))
        for number in range(count)
    )
    epoch = bench.service.tip.brokers[1].broker_epoch
    bench.start(bench.ask(AssignReplicasToDirectoriesRequest(broker_id=1, broker_epoch=epoch, assignments=wanted)))
