"""Batches that take several slices to look at: in order with the appends behind them, or refused and not stored."""

from __future__ import annotations

import asyncio

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import Record, encode_batch
from quorumlog.records.format.batch import BATCH_OVERHEAD, seal
from quorumlog.records.validation import record_check
from quorumlog_broker.produce import record_checks
from quorumlog_broker.produce.record_checks import RecordChecks

LARGE = 40


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_check, "SLICE_RECORDS", 4)


def large(name: str, *, damaged: bool = False) -> bytes:
    """A batch of LARGE records of different sizes, each of which begins with `name`."""
    written = [Record(n, 1_700_000_000_000, None, (name + "." * (n * 7 % 11)).encode()) for n in range(LARGE)]
    data = encode_batch(written)
    if not damaged:
        return data
    return seal(
        data[BATCH_OVERHEAD:-1] + b"\x02", base_offset=0, leader_epoch=0, attributes=0, last_offset_delta=LARGE - 1,
        base_timestamp=1_700_000_000_000, max_timestamp=1_700_000_000_000, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, count=LARGE,
    )  # fmt: skip


def led(partitions: int = 1) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=partitions)
    for index in range(partitions):
        cluster.wait_led(1, index=index)
    return cluster


async def append_all(node: Node, batches: list[tuple[int, bytes]]) -> list[int | ErrorCode]:
    """Begin all in one turn of the loop. The answers: a base offset or an error."""
    pending = [node.produce_path.append(TOPIC_ID, index, data, acks=-1, timeout_ms=5_000) for index, data in batches]
    answers: list[int | ErrorCode] = []
    for one in pending:
        try:
            answers.append((await one).base_offset)
        except ApiError as error:
            answers.append(error.code)
    return answers


def names(node: Node, index: int = 0) -> list[str]:
    """The names of the batches in the log, in order."""
    found: list[str] = []
    for value in node.log_values(index=index):
        if found[-1:] != [value.rstrip(".")]:
            found.append(value.rstrip("."))
    return found


def test_appends_behind_a_large_batch_do_not_overtake_it() -> None:
    cluster = led()
    node = cluster.nodes[1]
    batches = [(0, data) for data in (batch("a"), large("b"), batch("c"), large("d"), batch("e"))]
    answers = node.run(append_all(node, batches))
    assert answers == [0, 1, LARGE + 1, LARGE + 2, 2 * LARGE + 2]
    assert names(node) == ["a", "b", "c", "d", "e"]


def test_other_partitions_do_not_wait() -> None:
    cluster = led(partitions=2)
    node = cluster.nodes[1]

    async def scene() -> tuple[int, int]:
        slow = node.produce_path.append(TOPIC_ID, 0, large("b"), acks=1, timeout_ms=5_000)
        fast = node.produce_path.append(TOPIC_ID, 1, batch("a"), acks=1, timeout_ms=5_000)
        assert slow.result is None and fast.result is not None
        return (await fast).base_offset, (await slow).base_offset

    assert node.run(scene()) == (0, 0)


def test_a_large_batch_with_a_damaged_record_is_refused_and_those_behind_it_are_not() -> None:
    cluster = led()
    node = cluster.nodes[1]
    answers = node.run(append_all(node, [(0, large("b", damaged=True)), (0, batch("c")), (0, large("d"))]))
    assert answers == [ErrorCode.INVALID_RECORD, 0, 1]
    assert names(node) == ["c", "d"]


def test_a_leader_that_was_replaced_meanwhile_appends_nothing() -> None:
    cluster = led()
    node = cluster.nodes[1]

    async def scene() -> ErrorCode:
        pending = node.produce_path.append(TOPIC_ID, 0, large("b"), acks=-1, timeout_ms=5_000)
        cluster.elect(2, (1, 2, 3))
        with pytest.raises(ApiError) as caught:
            await pending
        return caught.value.code

    assert node.run(scene()) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.log_values() == []


def test_closing_refuses_what_waits() -> None:
    cluster = led()
    node = cluster.nodes[1]

    async def scene() -> ErrorCode:
        pending = node.produce_path.append(TOPIC_ID, 0, large("b"), acks=-1, timeout_ms=5_000)
        node.produce_path.close()
        with pytest.raises(ApiError) as caught:
            await pending
        return caught.value.code

    assert node.run(scene()) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_without_the_look_inside_only_the_header_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = led()
    node = cluster.nodes[1]
    monkeypatch.setattr(node.produce_path, "_looks_inside", False)
    assert node.run(append_all(node, [(0, large("b", damaged=True))])) == [0]


def test_the_line_is_bounded_and_takes_one_slice_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_checks, "MAX_WAITING", 2)
    left: list[str] = []

    async def scene() -> None:
        checks = RecordChecks()
        key = (TOPIC_ID, 0)
        checks.join(key, iter((None, None)), lambda _: left.append("first"))
        checks.join(key, iter(()), lambda _: left.append("second"))
        with pytest.raises(ApiError, match="2 appends wait") as caught:
            checks.join(key, iter(()), lambda _: left.append("third"))
        assert caught.value.code.retriable
        for expected in ([], [], ["first"], ["first", "second"]):
            assert checks.holds_up(key)
            await asyncio.sleep(0)
            assert left == expected
        assert not checks.holds_up(key) and len(checks) == 0
        checks.join(key, iter(()), lambda _: left.append("later"))
        await asyncio.sleep(0)
        assert left[2:] == ["later"]

    asyncio.run(scene())
