"""Joint transactions at a real log with three replicas: turns, failovers, and calls that wait for each other."""

from __future__ import annotations

from typing import Any

import pytest
from coordinator_cluster import CALLER
from test_transactions_load import TransactionsCluster

from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import (
    AbortJointRequest,
    BeginJointRequest,
    CommitJointRequest,
    JointChildRef,
    ListedJointGroup,
)
from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.messages.transactions import DescribedTransaction
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_broker.coordinator.runtime.coordinator import ShardCall, State
from quorumlog_broker.coordinator.transactions.joint import commit as commit_joint
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_quorum.metadata.features import JOINT_BEGINS, JOINT_VERSION

G = "spark/q"


class JointCluster(TransactionsCluster):
    """partition 0 of `__transaction_state` is all there is."""

    def __init__(self) -> None:
        super().__init__()
        self.commit(FeatureLevelRecord(name=JOINT_VERSION, level=JOINT_BEGINS))
        self.create_topic(name=TRANSACTION_STATE)
        self.wait_active(1)

    def wait_active(self, node_id: int) -> None:
        self.run_until(lambda: self.state(node_id) is State.ACTIVE)

    def ask(self, method: ShardCall, request: Any, node_id: int = 1) -> Any:
        return self.ask_all(method, [request], node_id)[0]

    def ask_all(self, method: ShardCall, requests: list[Any], node_id: int = 1) -> list[Any]:
        """At once; their answers in order."""

        async def call() -> list[Any]:
            coordinator = self.of_node[node_id].of(G)
            pending = [coordinator.call(method, CALLER, request) for request in requests]
            return [await one for one in pending]

        return self.nodes[node_id].run(call())

    def begun(self, sequence: int, count: int, node_id: int = 1, first: int = 0) -> list[tuple[str, JointChildRef]]:
        tokens = [b"%d.%d" % (sequence, first + n) for n in range(count)]
        requests = [
            BeginJointRequest(group_id=G, location="/c", run="r", sequence=sequence, token=token, timeout_ms=60_000)
            for token in tokens
        ]
        answers = self.ask_all(TransactionShard.begin_joint, requests, node_id)
        assert {one.error_code for one in answers} == {0}, answers[0]
        return [
            (one.transactional_id, JointChildRef(slot=one.slot, producer_epoch=one.producer_epoch, token=token))
            for one, token in zip(answers, tokens, strict=True)
        ]

    def states(self, names: list[str], node_id: int = 1) -> list[str]:
        found: list[DescribedTransaction] = self.ask_all(TransactionShard.describe, names, node_id)
        return [one.state for one in found]

    def groups(self, node_id: int = 1) -> tuple[ListedJointGroup, ...]:
        coordinator = self.coordinator(node_id)
        assert coordinator is not None
        return self.nodes[node_id].run(coordinator.list_joint())


def commit(sequence: int, *children: JointChildRef) -> CommitJointRequest:
    return CommitJointRequest(
        group_id=G, location="/c", run="r", sequence=sequence, children=children, commit_wait_ms=5_000
    )


@pytest.fixture
def cluster() -> JointCluster:
    return JointCluster()


def test_a_batch_is_decided_and_another_coordinator_knows_it(cluster: JointCluster) -> None:
    children = cluster.begun(0, 100)
    named = [ref for _, ref in children[:99]]
    response = cluster.ask(TransactionShard.commit_joint, commit(0, *named))
    assert (response.error_code, response.complete) == (0, True)
    names = [name for name, _ in children]
    cluster.run_for(1_000)
    cluster.elect(2, (1, 2, 3))
    cluster.wait_active(2)
    assert cluster.states(names, 2) == ["CompleteCommit"] * 99 + ["CompleteAbort"]
    again = cluster.ask(TransactionShard.commit_joint, commit(0, *named), 2)
    assert (again.error_code, again.complete) == (0, True)
    assert [one.sequence for one in cluster.groups(2)] == [0]
    assert [name for name, _ in cluster.begun(1, 100, 2)] != []
    assert len(cluster.groups(2)[0].open) == 100


def test_calls_of_a_group_wait_for_its_long_abort(cluster: JointCluster) -> None:
    children = cluster.begun(0, 200)
    coordinator = cluster.coordinator()
    assert coordinator is not None

    async def both() -> tuple[Any, Any]:
        aborted = coordinator.call(
            TransactionShard.abort_joint, CALLER, AbortJointRequest(group_id=G, location="/c", sequence=0)
        )
        decided = coordinator.call(TransactionShard.commit_joint, CALLER, commit(0, children[199][1]))
        return await aborted, await decided

    aborted, decided = cluster.nodes[1].run(both())
    assert (aborted.error_code, aborted.decided, aborted.aborted) == (0, False, 200)
    assert decided.error_code == 20_005  # the last child was aborted before the call had its turn
    assert set(cluster.states([name for name, _ in children])) == {"CompleteAbort"}


def test_calls_of_a_group_wait_for_its_long_decision(cluster: JointCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_joint, "CHILDREN_A_STEP", 10)
    children = cluster.begun(0, 200)
    coordinator = cluster.coordinator()
    assert coordinator is not None

    async def three() -> tuple[Any, Any, Any]:
        decided = coordinator.call(TransactionShard.commit_joint, CALLER, commit(0, *(ref for _, ref in children)))
        begun = coordinator.call(
            TransactionShard.begin_joint,
            CALLER,
            BeginJointRequest(group_id=G, location="/c", run="r", sequence=1, token=b"next", timeout_ms=60_000),
        )
        other = coordinator.call(
            TransactionShard.begin_joint,
            CALLER,
            BeginJointRequest(group_id="other", location="/c", run="r", sequence=0, token=b"o", timeout_ms=60_000),
        )
        return await other, await begun, await decided

    other, begun, decided = cluster.nodes[1].run(three())
    assert (other.error_code, decided.error_code, decided.complete) == (0, 0, True)
    assert begun.error_code == ErrorCode.CONCURRENT_TRANSACTIONS, "behind the decision, which is not committed then"
    assert set(cluster.states([name for name, _ in children])) == {"CompleteCommit"}
