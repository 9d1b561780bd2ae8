"""The client of joint groups, against brokers in memory whose coordinator is the real core."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import virtual_time
from fake_cluster import TestClock
from joint_cluster import JointCluster

from quorumlog.client.errors import (
    OF_CODE,
    AuthenticationFailed,
    CheckpointCopied,
    CheckpointRolledBack,
    ChildNotOpen,
    DecisionMissing,
    JointRefused,
    NoJointTransactions,
    ReplayDiffers,
    RequestFailed,
    Superseded,
    Unavailable,
    refused,
)
from quorumlog.client.joint import AsyncJoint
from quorumlog.client.producer import AsyncProducer
from quorumlog.client.transactions.driver import BegunTransaction
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    CommitJointResponse,
    JointChildRef,
    JointFact,
    ListJointRequest,
)
from quorumlog.rpc.transport import NotAuthenticated, NotServed, OutcomeUnknown

GROUP, HERE = "spark/q", "/checkpoints/q"
KINDS: dict[str, tuple[type, type]] = {
    "begin": (BeginJointRequest, BeginJointResponse),
    "commit": (CommitJointRequest, CommitJointResponse),
    "abort": (AbortJointRequest, AbortJointResponse),
}
CALLS = pytest.mark.parametrize("method", list(KINDS))


def make(cluster: JointCluster, **options: Any) -> AsyncJoint:
    options = {"bootstrap_servers": "b1,b2", "retry_backoff_ms": 2, "retry_backoff_max_ms": 10, **options}
    return AsyncJoint(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    virtual_time.run(scenario())


def begin(sequence: int = 0, token: bytes = b"t", run: str = "r1", **more: Any) -> BeginJointRequest:
    given = {"group_id": GROUP, "location": HERE, "timeout_ms": 60_000, **more}
    return BeginJointRequest(run=run, sequence=sequence, token=token, **given)


def commit(sequence: int = 0, *begun: tuple[BeginJointResponse, bytes], **more: Any) -> CommitJointRequest:
    refs = tuple(
        JointChildRef(slot=child.slot, producer_epoch=child.producer_epoch, token=token) for child, token in begun
    )
    given = {"group_id": GROUP, "location": HERE, "run": "r1", "commit_wait_ms": 10_000, **more}
    return CommitJointRequest(sequence=sequence, children=refs, **given)


def abort(sequence: int = 0, **more: Any) -> AbortJointRequest:
    return AbortJointRequest(group_id=GROUP, location=HERE, sequence=sequence, **more)


def refuse(cluster: JointCluster, method: str, code: ErrorCode, times: int) -> None:
    kind, response = KINDS[method]
    cluster.fault(kind, *[lambda _: response(error_code=code)] * times)


def any_call(joint: AsyncJoint, method: str, **more: Any) -> Coroutine[Any, Any, Any]:
    request = {"begin": begin(), "commit": commit(), "abort": abort()}[method]
    call: Coroutine[Any, Any, Any] = getattr(joint, method)(request, **more)
    return call


async def write(cluster: JointCluster, child: BeginJointResponse, partition: int, *values: bytes) -> None:
    begun = BegunTransaction(child.transactional_id, child.producer_id, child.producer_epoch, 2)
    options = {"bootstrap_servers": "b1,b2", "clock": TestClock(), "rng": random.Random(2), "begun": begun}
    async with AsyncProducer(cluster, **options) as producer:  # type: ignore[arg-type]
        for value in values:
            await producer.send("t", value, partition=partition)


def visible(cluster: JointCluster) -> list[bytes | None]:
    return sorted(value or b"" for partition in range(3) for value in cluster.visible("t", partition))


def test_two_children_commit_as_one_and_a_third_aborts() -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            children = [await joint.begin(begin(token=b"%d" % number)) for number in range(3)]
            for number, child in enumerate(children):
                await write(cluster, child, number, b"v%d" % number)
            assert visible(cluster) == []
            first, second = [(children[number], b"%d" % number) for number in range(2)]
            response = await joint.commit(commit(0, first, second))
            assert response.complete
            assert (await joint.begin(begin(0, b"late"))).decided
            assert (await joint.abort(abort(0))).decided

    run(scenario)
    assert visible(cluster) == [b"v0", b"v1"]


def test_an_abort_by_token_and_by_run() -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            for token, of_run in ((b"a", "r1"), (b"b", "r1"), (b"c", "r2")):
                await joint.begin(begin(0, token, of_run))
            assert [
                (await joint.abort(one)).aborted
                for one in (abort(0, token=b"a"), abort(0, token=b"a"), abort(0, run="r1"), abort(0))
            ] == [1, 0, 1, 1]

    run(scenario)


@CALLS
def test_a_lost_answer_is_asked_for_again(method: str) -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            child = await joint.begin(begin(token=b"first"))
            cluster.fault_after(KINDS[method][0], lambda _: OutcomeUnknown("lost"))
            await any_call(joint, method)
            if method == "begin":
                again = await joint.begin(begin())
                assert again.slot == child.slot + 1, "the lost try and the next one got the same child"

    run(scenario)


@CALLS
@pytest.mark.parametrize(
    "code", ["COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS", "COORDINATOR_NOT_AVAILABLE"]
)
def test_what_passes_is_waited_for(method: str, code: str) -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            refuse(cluster, method, ErrorCode[code], 5)
            await any_call(joint, method)
            refuse(cluster, method, ErrorCode[code], 10_000)
            with pytest.raises(Unavailable, match=rf"joint group 'spark/q' has not answered .* within 300 ms .*{code}"):
                await any_call(joint, method, timeout_ms=300)

    run(scenario)


@CALLS
def test_the_coordinator_moves(method: str) -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            await joint.begin(begin(token=b"first"))
            cluster.coordinator = 3
            await any_call(joint, method)

    run(scenario)


def test_a_decision_that_is_carried_out_is_waited_for_briefly() -> None:
    """Not for the back-off, whose first wait would be the longest part of a commit."""
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster, retry_backoff_ms=400, retry_backoff_max_ms=400) as joint:
            clock = TestClock()
            refuse(cluster, "commit", ErrorCode.CONCURRENT_TRANSACTIONS, 3)
            start_ms = clock.now_ms()
            await joint.commit(commit())
            assert clock.now_ms() - start_ms < 100

    run(scenario)


def test_each_refusal_has_its_class() -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            child = await joint.begin(begin())
            await joint.abort(abort())
            with pytest.raises(ChildNotOpen, match="AbortJoint has aborted it; nothing was decided"):
                await joint.commit(commit(0, (child, b"t")))
            await joint.commit(commit(0, facts=(JointFact(name="orders", value=1),)))
            await joint.commit(commit(1, run="r2"))
            cases: list[tuple[Any, type[JointRefused], str]] = [
                (begin(2, location="/copy"), CheckpointCopied, "checkpointMoved=/checkpoints/q"),
                (begin(2), Superseded, "run r1 of spark/q is over"),
                (begin(0, run="r2"), CheckpointRolledBack, "give the sink a new sinkId, and it begins anew"),
                (begin(3, run="r2"), DecisionMissing, "set firstBatch=3"),
            ]
            for request, kind, why in cases:
                with pytest.raises(kind, match=why):
                    await joint.begin(request)
            with pytest.raises(ReplayDiffers, match="set replayMismatch=1"):
                await joint.commit(commit(1, run="r2", facts=(JointFact(name="orders", value=2),)))
            with pytest.raises(JointRefused, match="a token has 1 to 64 bytes"):
                await joint.begin(begin(2, b"", run="r2"))

    run(scenario)
    assert type(refused(ErrorCode.POLICY_VIOLATION, "full")) is JointRefused
    assert all(type(refused(code, "")) is kind for code, kind in OF_CODE.items())
    assert {code for code in ErrorCode if code >= ErrorCode.CHECKPOINT_COPIED} == set(OF_CODE)


@CALLS
def test_a_cluster_without_them_is_named(method: str) -> None:
    """By what it is, at once."""
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            cluster.is_on = False
            with pytest.raises(NoJointTransactions, match=r"is written exactly once: joint\.version is at level 0"):
                await any_call(joint, method)
            cluster.fault(KINDS[method][0], lambda _: NotServed("speaks no gRPC"))
            with pytest.raises(NoJointTransactions, match="is an Apache Kafka, or a quorumlog that is older"):
                await any_call(joint, method)

    run(scenario)


@CALLS
def test_a_login_that_is_refused_is_not_asked_for_again(method: str) -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            cluster.fault(KINDS[method][0], lambda _: NotAuthenticated("alice is refused"))
            with pytest.raises(AuthenticationFailed, match="alice is refused"):
                await any_call(joint, method)

    run(scenario)


def test_groups_are_listed_by_all_brokers() -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            await joint.begin(begin(0, b"a"))
            await joint.begin(begin(4, b"b", "r2", group_id="a-sink", first_batch=4))
            await joint.commit(commit())
            found = await joint.list_groups()
            assert [(one.group_id, one.sequence, [(c.run, c.sequence) for c in one.open]) for one in found] == [
                ("a-sink", -1, [("r2", 4)]),
                (GROUP, 0, []),
            ]
            assert {node for node, one in cluster.requests if isinstance(one, ListJointRequest)} == {1, 2, 3}
            cluster.fault(ListJointRequest, lambda _: NotServed("speaks no gRPC"))
            with pytest.raises(NoJointTransactions, match="is an Apache Kafka"):
                await joint.list_groups()

    run(scenario)


def test_a_coordinator_that_cannot_be_found() -> None:
    cluster = JointCluster()

    async def scenario() -> None:
        async with make(cluster) as joint:
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            cluster.fault(FindCoordinatorRequest, lambda _: FindCoordinatorResponse(error_code=code))
            with pytest.raises(RequestFailed, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
                await joint.begin(begin())

    run(scenario)
