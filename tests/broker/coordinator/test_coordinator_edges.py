"""Coordinators that load or append where something goes wrong: what is forgotten, what stays, and what is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import CorruptRecords
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.offsets import GroupMetadataKey
from quorumlog.settings.groups import GroupConfig
from quorumlog.settings.transactions import TransactionConfig
from quorumlog_broker.coordinator.group_turn import Write
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.group_coordinator import State
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from tests.broker.coordinator.coordinator_cluster import CoordinatorCluster
from tests.broker.coordinator.test_coordinators import loaded_with, refused
from tests.rules import rule


def group_shard() -> GroupShard:
    return GroupShard(GroupConfig(), lambda: "u")


def transaction_shard() -> TransactionShard:
    return TransactionShard(TransactionConfig(), lambda: 1, lambda _topic, _index: True, 5, lambda: 50, lambda: 2)


@rule("group 4.9")
def test_offsets_of_a_topic_that_is_deleted_while_they_are_loaded_go_then() -> None:
    cluster = loaded_with(2_000)
    cluster.elect(2, (1, 2, 3))
    cluster.run_until(lambda: cluster.state(2) is State.LOADING)

    async def delete() -> None:
        cluster.of_node[2].topics_deleted([("t", b"t" * 16)])

    cluster.nodes[2].run(delete())
    assert cluster.state(2) is State.LOADING
    cluster.wait_active(2)
    cluster.run_for(1_000)
    assert cluster.fetched(2) == -1


@rule("group 1.5")
def test_a_coordinator_that_cannot_read_its_log_says_so() -> None:
    cluster = CoordinatorCluster()
    cluster.create()

    async def write() -> None:
        unreadable = Write(encode_key(GroupMetadataKey("g")), b"\0\3")
        cluster.coordinator()._pending_appends.add([unreadable])

    cluster.nodes[1].run(write())
    cluster.run_for(1_000)
    cluster.elect(2, (1, 2, 3))
    cluster.run_until(lambda: cluster.state(2) is State.FAILED)
    assert refused(cluster, 2) is ErrorCode.NOT_COORDINATOR


@rule("group 1.5", "bug 10614")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_log_that_takes_nothing_is_told_as_a_coordinator(
    code: ErrorCode, told: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = CoordinatorCluster()
    cluster.create()

    def check(*_args: object) -> None:
        raise ApiError(code, "no")

    monkeypatch.setattr(cluster.coordinator()._node.appends, "check", check)
    with pytest.raises(ApiError) as refusal:
        cluster.commit_offset(7)
    assert refusal.value.code is told


@rule("group 1.5", "bug 9666")
def test_what_could_not_be_appended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-9666: the core has decided with records that the log does not have."""
    cluster = CoordinatorCluster()
    cluster.create()
    assert cluster.commit_offset(7) == 0

    def fail(_replica: object, _epoch: int, _data: bytes, written: Callable[[ApiError | None], None]) -> None:
        cluster.nodes[1].loop.call_soon(written, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "a failed write"))

    with monkeypatch.context() as patch:
        patch.setattr(cluster.coordinator()._node.appends, "append", fail)
        with pytest.raises(ApiError) as refusal:
            cluster.commit_offset(8)
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
    cluster.wait_active(1)
    assert cluster.fetched() == 7
    assert cluster.commit_offset(9) == 0


@rule("bug 5351")
def test_what_the_log_does_not_take_now_leaves_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-5351: nothing that was decided stays pending."""
    cluster = CoordinatorCluster()
    cluster.create()
    appends = cluster.coordinator()._node.appends
    append, refusals = appends.append, [1, 2]

    def full(*args: Any) -> None:
        if refusals:
            refusals.pop()
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "a full queue")
        append(*args)

    monkeypatch.setattr(appends, "append", full)
    assert cluster.commit_offset(7) == 0 and not refusals
    assert cluster.fetched() == 7


# --- records of other software ---


@rule("group 2.4")
@pytest.mark.parametrize("shard", [group_shard(), transaction_shard()], ids=["groups", "transactions"])
def test_a_record_of_newer_software_is_passed_over_and_a_damaged_one_is_not(
    shard: GroupShard | TransactionShard,
) -> None:
    shard.replay_bytes(0, b"\x00\x63new", b"any")
    shard.loaded(1)
    for key in (b"", b"\x00"):
        with pytest.raises(CorruptRecords):
            shard.replay_bytes(1, key, b"any")
