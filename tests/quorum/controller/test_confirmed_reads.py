"""What a controller answers without a record waits until its leadership is confirmed; a hand-over fails no caller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from controller_world import registration
from service_world import CONTROLLER, Bench, refusal, topics

from jepsen.sim.time import killed_coroutines
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog_quorum.controller.shell.activation_wait import WAIT_MAX_MS
from tests.rules import rule

SET = 0


@pytest.fixture
def leader() -> Iterator[Bench]:
    """It has a broker and the topic t, and reads are not confirmed by themselves."""
    bench = Bench()
    bench.transport.answer = bench.alive
    bench.do(lambda: bench.driver.lead(1))
    bench.start_broker(1)
    bench.run(bench.ask(topics("t")))
    bench.run(bench.ask(set_retention()))
    bench.driver.auto_confirm = False
    yield bench
    bench.loop.kill()
    killed_coroutines.empty()


def set_retention() -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name="retention.ms", operation=SET, value="1000")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


READS: dict[str, Any] = {
    "the topic exists": lambda bench: topics("t"),
    "only validated": lambda bench: replace(topics("new"), validate_only=True),
    "the setting has that value": lambda bench: set_retention(),
    "the broker may stop": lambda bench: replace(bench.heartbeat(1), want_fence=True, want_shutdown=True),
    "a stale broker epoch": lambda bench: replace(bench.heartbeat(1), broker_epoch=1),
    "registered already": lambda bench: registration(1),
}


@rule("kraft 3.27", "kraft 7.15")
@pytest.mark.parametrize("what", READS)
def test_an_answer_without_a_record_waits_for_the_confirmation(leader: Bench, what: str) -> None:
    request = READS[what](leader)
    if what == "the broker may stop":
        leader.run(leader.ask(request))  # fences it, which is a record
    before = leader.driver.end_offset
    asked = leader.start(leader.ask(request))
    leader.wait(100)
    assert not asked.done() and leader.driver.end_offset == before
    leader.do(leader.driver.confirm)
    leader.wait(1)
    assert asked.done()
    asked.exception()


@rule("kraft 7.16")
@pytest.mark.parametrize("what", READS)
def test_an_answer_that_cannot_be_confirmed_sends_the_caller_to_the_next_controller(leader: Bench, what: str) -> None:
    if what == "the broker may stop":
        leader.run(leader.ask(READS[what](leader)))
    asked = leader.start(leader.ask(READS[what](leader)))
    leader.do(leader.driver.lose)
    assert refusal(leader, asked).code is ErrorCode.NOT_CONTROLLER
    leader.do(leader.driver.confirm)  # a confirmation that comes late changes nothing
    leader.wait(1)


@rule("kraft 7.15")
def test_an_answer_with_records_needs_no_confirmation(leader: Bench) -> None:
    assert leader.run(leader.ask(topics("new"))).topics[0].error_code == 0
    assert leader.driver.confirmations == []


@rule("kraft 7.16")
def test_a_heartbeat_that_changes_nothing_needs_no_confirmation(leader: Bench) -> None:
    assert not leader.run(leader.ask(leader.heartbeat(1))).is_fenced
    assert leader.driver.confirmations == []


@rule("kraft 7.15")
def test_a_confirmed_answer_still_waits_for_the_commit_of_what_it_has_read(leader: Bench) -> None:
    leader.driver.auto_commit = False
    writing = leader.start(leader.ask(topics("new")))
    reading = leader.start(leader.ask(topics("new")))
    leader.do(leader.driver.confirm)
    leader.wait(100)
    assert not reading.done()
    leader.do(leader.driver.commit)
    assert leader.run(writing).topics[0].error_code == 0
    assert leader.run(reading).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


# --- activation ---


@rule("kraft 7.17")
def test_a_request_to_an_elected_controller_waits_until_it_is_active() -> None:
    bench = Bench()
    bench.transport.answer = bench.alive
    bench.do(lambda: bench.service.on_leader_change(1, 1, CONTROLLER))
    asked = bench.start(bench.ask(registration(1)))
    bench.wait(200)
    assert not asked.done()
    bench.do(lambda: bench.driver.lead(1))
    assert bench.run(asked).broker_epoch > 0


@rule("kraft 7.17")
def test_a_request_to_an_elected_controller_waits_no_longer_than_its_leadership() -> None:
    bench = Bench()
    bench.do(lambda: bench.service.on_leader_change(1, 1, CONTROLLER))
    asked = bench.start(bench.ask(registration(1)))
    bench.do(lambda: bench.service.on_leader_change(2, 2, CONTROLLER))
    bench.wait(1)
    assert asked.done(), "at once, not when its time is over"
    assert refusal(bench, asked).code is ErrorCode.NOT_CONTROLLER


@rule("kraft 7.17")
def test_a_request_waits_a_bounded_time_for_the_activation() -> None:
    bench = Bench()
    bench.do(lambda: bench.service.on_leader_change(1, 1, CONTROLLER))
    asked = bench.start(bench.ask(registration(1)))
    bench.wait(WAIT_MAX_MS + 1)
    assert asked.done() and refusal(bench, asked).code is ErrorCode.NOT_CONTROLLER


# --- hand-over ---


def hand_over(bench: Bench) -> None:
    for listener in bench.driver.listeners:
        listener.on_hand_over(bench.driver.epoch)


@rule("kraft 7.18")
def test_a_hand_over_refuses_new_requests_and_answers_what_is_appended(leader: Bench) -> None:
    leader.driver.auto_commit = False
    writing = leader.start(leader.ask(topics("new")))
    leader.do(lambda: hand_over(leader))
    assert refusal(leader, leader.ask(topics("later"))).code is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.NOT_CONTROLLER.retriable
    leader.do(leader.driver.commit)
    assert leader.run(writing).topics[0].error_code == 0


@rule("kraft 7.18")
def test_a_controller_that_finds_no_successor_goes_on(leader: Bench) -> None:
    leader.do(lambda: hand_over(leader))

    def claim_again() -> None:
        for listener in leader.driver.listeners:
            listener.on_claim(leader.driver.epoch, leader.driver.end_offset)

    leader.do(claim_again)
    assert leader.run(leader.ask(topics("new"))).topics[0].error_code == 0


def test_the_end_of_a_hand_over_fails_what_is_left(leader: Bench) -> None:
    leader.driver.auto_commit = False
    writing = leader.start(leader.ask(topics("new")))
    leader.do(lambda: hand_over(leader))
    leader.do(leader.driver.lose)
    assert refusal(leader, writing).code is ErrorCode.REQUEST_TIMED_OUT  # it may survive
    assert CONTROLLER.host in refusal(leader, leader.ask(topics("later"))).message
