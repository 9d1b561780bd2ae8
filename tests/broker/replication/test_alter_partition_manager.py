"""AlterPartition requests: batched, one in flight, repeated after failures (Kafka's AlterPartitionManagerTest)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from quorumlog.errors import ErrorCode
from quorumlog.messages.controller import AlterPartitionRequest, AlterPartitionResponse, AlterPartitionResult
from quorumlog.rpc.transport import OutcomeUnknown
from quorumlog_broker.partition.events import IsrAnswered, PartitionEvent, ProposeIsr
from quorumlog_broker.partition.isr_state import PendingExpand, PendingShrink
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_broker.replication.alter_partition_manager import AlterPartitionManager, IsrCounts

TOPIC = bytes([5]) * 16


def proposal(version: int = 3) -> ProposeIsr:
    return ProposeIsr(leader_epoch=2, partition_epoch=version, members=((1, -1), (2, 20)))


class Controller:
    """Answers each request with the next of `script`; after that grants all."""

    def __init__(self, *script: AlterPartitionResponse | Exception) -> None:
        self.script = list(script)
        self.requests: list[AlterPartitionRequest] = []
        self.in_flight = 0

    async def call(self, request: Any, timeout_ms: int) -> AlterPartitionResponse:
        assert self.in_flight == 0, "two requests in flight"
        self.in_flight += 1
        self.requests.append(request)
        await asyncio.sleep(0.01)
        self.in_flight -= 1
        if self.script:
            answer = self.script.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return AlterPartitionResponse(
            partitions=tuple(
                AlterPartitionResult(
                    topic_id=one.topic_id,
                    index=one.index,
                    leader_epoch=one.leader_epoch,
                    partition_epoch=one.partition_epoch + 1,
                    isr=tuple(member.broker_id for member in one.new_isr),
                )
                for one in request.partitions
            )
        )


def run(
    controller: Controller, *, ask_again: bool = True, gone: Sequence[int] = (), counts: list[IsrCounts] | None = None
) -> list[tuple[int, ErrorCode]]:
    """Propose for three partitions, the third while a request is in flight; each proposes again after an error."""
    answers: list[tuple[int, ErrorCode]] = []
    manager: AlterPartitionManager
    loop = SimLoop(Scheduler(1), "n1")

    registry = Registry()

    def step(replica: Replica, event: PartitionEvent) -> None:
        assert isinstance(event, IsrAnswered)
        answers.append((replica.key[1], event.error))
        if event.error is not ErrorCode.NONE and ask_again:
            manager.submit(replica, proposal())

    async def scenario() -> None:
        nonlocal manager
        manager = AlterPartitionManager(
            node_id=1,
            registry=registry,
            step=step,
            controller=controller,
            broker_epoch=lambda: 10,
            metadata_end=lambda: 77,
            retry_ms=50,
        )
        task = asyncio.get_running_loop().create_task(manager.run())

        def propose(index: int) -> None:
            shrinking = SimpleNamespace(isr_state=PendingShrink((1, 2, 3), (3,)))
            expanding = SimpleNamespace(isr_state=PendingExpand((1,), 2))
            replica = cast(Replica, SimpleNamespace(key=(TOPIC, index), core=shrinking if index else expanding))
            if index not in gone:
                registry.replicas[replica.key] = replica
            manager.submit(replica, proposal())

        propose(0)
        propose(1)
        await asyncio.sleep(0.005)
        propose(2)
        await asyncio.sleep(1)
        task.cancel()

    loop.run_until_complete(scenario())
    if counts is not None:
        counts.append(manager.counts)
    return answers


def test_what_waits_goes_together_and_one_request_at_a_time() -> None:
    controller = Controller()
    assert run(controller) == [(0, ErrorCode.NONE), (1, ErrorCode.NONE), (2, ErrorCode.NONE)]
    assert [[one.index for one in request.partitions] for request in controller.requests] == [[0, 1], [2]]


def test_members_carry_their_broker_epochs_and_the_leader_its_own() -> None:
    controller = Controller()
    run(controller)
    assert controller.requests[0].metadata_end == 77
    members = controller.requests[0].partitions[0].new_isr
    assert [(member.broker_id, member.broker_epoch) for member in members] == [(1, 10), (2, 20)]


def test_a_call_that_failed_or_was_refused_as_a_whole_is_repeated() -> None:
    stale = AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    controller = Controller(OutcomeUnknown("cut"), stale)
    answers = run(controller)
    assert [error for _, error in answers].count(ErrorCode.NONE) == 3
    assert len(controller.requests) == 3


def test_a_partition_that_the_response_leaves_out_is_proposed_again() -> None:
    controller = Controller(AlterPartitionResponse())
    assert [error for _, error in run(controller)].count(ErrorCode.NONE) == 3


def test_a_refused_partition_gets_the_reason() -> None:
    refusal = AlterPartitionResult(topic_id=TOPIC, index=0, error_code=ErrorCode.INELIGIBLE_REPLICA)
    unheard = AlterPartitionResult(topic_id=TOPIC, index=1, error_code=4_711)
    controller = Controller(AlterPartitionResponse(partitions=(refusal, unheard)))
    answers = run(controller, ask_again=False)
    assert answers[:2] == [(0, ErrorCode.INELIGIBLE_REPLICA), (1, ErrorCode.UNKNOWN_SERVER_ERROR)]


def test_a_replica_that_left_meanwhile_gets_no_answer() -> None:
    assert run(Controller(), gone=(1,)) == [(0, ErrorCode.NONE), (2, ErrorCode.NONE)]


def test_changes_are_counted_by_their_kind_and_refusals_as_such() -> None:
    refused = AlterPartitionResult(topic_id=TOPIC, index=0, error_code=ErrorCode.INELIGIBLE_REPLICA)
    granted = AlterPartitionResult(topic_id=TOPIC, index=1, leader_epoch=2, partition_epoch=4, isr=(1, 2))
    counts: list[IsrCounts] = []
    lost = OutcomeUnknown("cut")  # is asked for again, and counted then
    script = (lost, AlterPartitionResponse(partitions=(refused, granted)))
    run(Controller(*script), counts=counts)
    assert counts == [IsrCounts(shrinks=2, expands=1, failed=1)], "0 joins after a refusal; 1 and 2 leave"
