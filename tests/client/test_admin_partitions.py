"""The admin client and reassignments: its requests, in portions, and what it makes of the answers and of doubt."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.partitions import (
    PARTITIONS_PER_REQUEST,
    ElectionType,
    PartitionOutcome,
    Reassignment,
    failure,
    failures,
)
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectionPartitionResult,
    ElectionTopicResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResult,
    ReassignableTopicResult,
)
from quorumlog.rpc.transport import OutcomeUnknown

DONE = PartitionOutcome(ErrorCode.NONE)
UNKNOWN = PartitionOutcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
IDLE = PartitionOutcome(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "nothing under way")


class Controller(FakeCluster):
    """Keeps the targets that were set; knows the partitions of `t` and `u` below 2,000."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: dict[tuple[str, int], tuple[int, ...]] = {}

    async def _AlterPartitionReassignmentsRequest(
        self, _node: int, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            topics=tuple(
                ReassignableTopicResult(
                    name=topic.name, partitions=tuple(self._altered(topic.name, one) for one in topic.partitions)
                )
                for topic in request.topics
            )
        )

    def _altered(self, topic: str, wanted: Any) -> ReassignablePartitionResult:
        outcome, key = DONE, (topic, wanted.index)
        if topic not in ("t", "u") or wanted.index >= 2_000:
            outcome = UNKNOWN
        elif wanted.cancel:
            outcome = DONE if self.targets.pop(key, None) else IDLE
        else:
            self.targets[key] = wanted.replicas
        return ReassignablePartitionResult(index=wanted.index, error_code=outcome.error, error_message=outcome.message)

    async def _ListPartitionReassignmentsRequest(
        self, _node: int, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        asked = {(topic.name, index) for topic in request.topics for index in topic.partitions}
        found = sorted(key for key in self.targets if request.all_topics or key in asked)
        return ListPartitionReassignmentsResponse(
            topics=tuple(
                OngoingTopicReassignment(
                    name=topic,
                    partitions=(
                        OngoingPartitionReassignment(
                            index=index,
                            replicas=(*self.targets[topic, index], 9),
                            adding_replicas=(4,),
                            removing_replicas=(9,),
                        ),
                    ),
                )
                for topic, index in found
            )
        )

    async def _ElectLeadersRequest(self, _node: int, request: ElectLeadersRequest) -> ElectLeadersResponse:
        asked = [(topic.name, index) for topic in request.topics for index in topic.partitions]
        code = ErrorCode.NONE if request.all_partitions else ErrorCode.ELECTION_NOT_NEEDED
        keys = [("t", request.election_type)] if request.all_partitions else asked
        return ElectLeadersResponse(
            topics=tuple(
                ElectionTopicResult(name=topic, partitions=(ElectionPartitionResult(index=index, error_code=code),))
                for topic, index in keys
            )
        )

    def asked(self, kind: type) -> list[Any]:
        return [request for _, request in self.requests if isinstance(request, kind)]


@pytest.fixture
def controller() -> Controller:
    return Controller()


def run(controller: Controller, work: Callable[[AsyncAdmin], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        options = {"bootstrap_servers": "b1:9092", "retry_backoff_ms": 1, "default_api_timeout_ms": 500}
        admin = AsyncAdmin(controller, options, clock=TestClock(), rng=random.Random(1))  # type: ignore[arg-type]
        async with admin:
            return await work(admin)

    return virtual_time.run(scenario())


def test_a_reassignment_is_begun_listed_and_cancelled(controller: Controller) -> None:
    async def work(admin: AsyncAdmin) -> None:
        begun = await admin.alter_partition_reassignments({("t", 1): [3, 4], ("u", 0): (4, 1), ("x", 0): [1]})
        assert begun == {("t", 1): DONE, ("u", 0): DONE, ("x", 0): UNKNOWN}
        assert failures(begun) == {("x", 0): UNKNOWN}
        t1 = Reassignment((3, 4, 9), (4,), (9,))
        assert t1.target == (3, 4)
        assert await admin.list_partition_reassignments() == {
            ("t", 1): t1,
            ("u", 0): Reassignment((4, 1, 9), (4,), (9,)),
        }
        assert await admin.list_partition_reassignments([("t", 1), ("t", 2)]) == {("t", 1): t1}
        assert await admin.list_partition_reassignments([]) == {}
        assert await admin.alter_partition_reassignments({("t", 1): None, ("t", 2): None}) == {
            ("t", 1): DONE,
            ("t", 2): IDLE,
        }

    run(controller, work)
    assert controller.targets == {("u", 0): (4, 1)}


def test_large_changes_go_in_portions(controller: Controller) -> None:
    wanted = {("t", index): (1, 2) for index in range(2 * PARTITIONS_PER_REQUEST - 1)}
    outcomes = run(controller, lambda admin: admin.alter_partition_reassignments(wanted))
    assert outcomes == dict.fromkeys(wanted, DONE)
    sizes = [len(one.topics[0].partitions) for one in controller.asked(AlterPartitionReassignmentsRequest)]
    assert sizes == [PARTITIONS_PER_REQUEST, PARTITIONS_PER_REQUEST - 1]


def test_a_cancellation_whose_answer_was_lost_counts_as_done(controller: Controller) -> None:
    controller.targets["t", 0] = (1,)
    controller.fault_after(AlterPartitionReassignmentsRequest, lambda _request: OutcomeUnknown("lost"))
    outcomes = run(controller, lambda admin: admin.alter_partition_reassignments({("t", 0): None}))
    assert outcomes == {("t", 0): DONE}
    assert len(controller.asked(AlterPartitionReassignmentsRequest)) == 2


def test_another_controller_is_asked_again_and_other_errors_are_raised(controller: Controller) -> None:
    moved = AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    controller.fault(AlterPartitionReassignmentsRequest, lambda _request: moved)
    assert run(controller, lambda admin: admin.alter_partition_reassignments({("t", 0): [1]})) == {("t", 0): DONE}
    refused = ListPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    controller.fault(ListPartitionReassignmentsRequest, lambda _request: refused)
    with pytest.raises(RequestFailed) as caught:
        run(controller, lambda admin: admin.list_partition_reassignments())
    assert caught.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("election", list(ElectionType))
def test_leaders_are_elected(controller: Controller, election: ElectionType) -> None:
    not_needed = PartitionOutcome(ErrorCode.ELECTION_NOT_NEEDED)
    assert run(controller, lambda admin: admin.elect_leaders(election)) == {("t", int(election)): DONE}
    outcomes = run(controller, lambda admin: admin.elect_leaders(election, [("t", 3), ("u", 1), ("t", 3)]))
    assert outcomes == {("t", 3): not_needed, ("u", 1): not_needed}
    assert str(failure(("t", 3), not_needed)).endswith("t-3: ELECTION_NOT_NEEDED")
