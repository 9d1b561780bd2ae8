"""Transactions on simulated machines, as a coordinator will drive them: guards, markers, and what readers get."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, values_of
from transactional_batches import guard_for, in_transaction, verified, write

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import AbortedTransaction, FetchPartition, FetchPartitionResponse
from quorumlog.records import Record, encode_batch
from quorumlog.records.format.batch import headers
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.offset_queries import LATEST, list_offset
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.produce.transactional import EndTransaction, Verified
from quorumlog_storage.producers.transactions import NEVER
from quorumlog_storage.producers.verification import Guard
from quorumlog_storage.rules.isolation import Isolation
from tests.rules import rule

P, Q = 41, 42
COMMITTED = 1
INVALID_TXN = ErrorCode.INVALID_TXN_STATE


def led_cluster(**options: Any) -> ReplicaCluster:
    cluster = ReplicaCluster(**options)
    cluster.create_topic()
    cluster.wait_led(1)
    return cluster


def end(cluster: ReplicaCluster, producer_id: int, node: int = 1, **ending: Any) -> int:
    wanted = EndTransaction(
        producer_id,
        ending.pop("epoch", 0),
        ending.pop("committed", False),
        ending.pop("coordinator", 0),
        ending.pop("version", 0),
    )

    async def append() -> int:
        path = cluster.nodes[node].produce_path
        return (await path.append_end_txn_marker(TOPIC_ID, 0, wanted, timeout_ms=5_000)).base_offset

    return cluster.nodes[node].run(append())


def code_of(call: Any, *arguments: Any, **options: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        call(*arguments, **options)
    return caught.value.code


def told(answer: FetchPartitionResponse) -> list[tuple[int, int]]:
    return [(one.producer_id, one.first_offset) for one in answer.aborted_transactions]


def test_a_producers_transactional_batch_is_refused_as_long_as_no_coordinator_vouches_for_it() -> None:
    cluster = led_cluster()
    records = in_transaction(P, 0, "a")
    assert code_of(cluster.produce_batch, 1, records) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@rule("storage 4.6", "log 3.20", "bug 12671")
def test_the_first_batch_needs_the_guard_that_still_holds() -> None:
    cluster = led_cluster()
    records = in_transaction(P, 0, "a")
    assert code_of(write, cluster, records, None) is INVALID_TXN
    guard = guard_for(cluster.nodes[1], records)
    assert guard is not None and guard_for(cluster.nodes[1], records) is guard
    assert code_of(write, cluster, records, Guard()) is INVALID_TXN
    assert write(cluster, records, guard) == 0
    following = in_transaction(P, 1, "b")
    assert guard_for(cluster.nodes[1], following) is None
    assert write(cluster, following, None) == 1
    assert write(cluster, records, None) == 0, "a repetition needs none"


@rule("storage 4.6", "log 3.20", "bug 12671")
def test_a_late_batch_of_an_ended_transaction_begins_no_other_one() -> None:
    cluster = led_cluster()
    late = in_transaction(P, 1, "late")
    guard = guard_for(cluster.nodes[1], late)
    end(cluster, P)
    assert code_of(write, cluster, late, guard) is INVALID_TXN
    verified(cluster, in_transaction(P, 0, "a"))
    end(cluster, P, committed=True)
    assert code_of(write, cluster, late, None) is INVALID_TXN
    again = guard_for(cluster.nodes[1], late)
    assert again is not None and again is not guard


@rule("bug 19999")
@pytest.mark.parametrize(("marker_epoch", "holds"), [(0, True), (1, True), (2, False)])
def test_a_repeated_marker_leaves_the_guard_of_the_next_transaction(marker_epoch: int, holds: bool) -> None:
    """Each transaction has its epoch: that of the records here is 1, and the marker of the one before has it, too."""
    cluster = led_cluster()
    verified(cluster, in_transaction(P, 0, "a"))
    end(cluster, P, epoch=1, version=2)
    following = in_transaction(P, 0, "b", epoch=1)
    guard = guard_for(cluster.nodes[1], following, epoch_per_transaction=True)
    if marker_epoch == 0:
        assert code_of(end, cluster, P, epoch=0, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    else:
        end(cluster, P, epoch=marker_epoch, version=2)
    if holds:
        assert write(cluster, following, guard) > 0
    else:
        assert code_of(write, cluster, following, guard) is INVALID_TXN


@rule("log 3.20", "log 6.14")
def test_the_guard_of_an_earlier_leadership_does_not_hold() -> None:
    cluster = led_cluster()
    records = in_transaction(P, 0, "a")
    guard = guard_for(cluster.nodes[1], records)
    cluster.elect(2, (1, 2))
    cluster.wait_led(2)
    cluster.elect(1, (1, 2))
    cluster.wait_led(1)
    assert code_of(write, cluster, records, guard) is INVALID_TXN


@rule("log 6.14")
def test_the_first_of_several_verified_batches_has_the_lowest_sequence() -> None:
    cluster = led_cluster()
    second, first = in_transaction(P, 1, "b"), in_transaction(P, 0, "a")
    guard = guard_for(cluster.nodes[1], second)
    assert guard_for(cluster.nodes[1], first) is guard
    assert code_of(write, cluster, second, guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [write(cluster, first, guard), write(cluster, second, None)] == [0, 1]


@rule("storage 5.3")
@pytest.mark.parametrize(("begins_at_0", "is_taken"), [(True, False), (False, True)])
def test_an_unknown_producer_with_an_epoch_for_each_transaction_begins_at_0(begins_at_0: bool, is_taken: bool) -> None:
    cluster = led_cluster()
    records = in_transaction(P, 7, "a")
    guard = guard_for(cluster.nodes[1], records, epoch_per_transaction=begins_at_0)
    if is_taken:
        assert write(cluster, records, guard) == 0
    else:
        assert code_of(write, cluster, records, guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_nothing_else_of_a_producer_while_its_transaction_is_open() -> None:
    cluster = led_cluster()
    verified(cluster, in_transaction(P, 0, "a"))
    plain = encode_batch([Record(0, 0, None, b"x", ())], producer_id=P, producer_epoch=0, base_sequence=1)
    assert code_of(cluster.produce_batch, 1, plain) is INVALID_TXN


@rule("storage 5.3", "storage 10.7", "log 3.7", "log 6.3", "group 6.13")
def test_which_markers_a_coordinator_may_write() -> None:
    cluster = led_cluster()
    verified(cluster, in_transaction(P, 0, "a", epoch=4))
    assert code_of(end, cluster, P, epoch=3) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(end, cluster, P, epoch=4, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(cluster, P, epoch=5, version=2, coordinator=9) == 1
    assert end(cluster, P, epoch=5, version=2, coordinator=9) == 2, "a repetition finds no transaction open"
    assert code_of(end, cluster, P, epoch=5, coordinator=8) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert code_of(verified, cluster, in_transaction(P, 1, "late", epoch=4)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(verified, cluster, in_transaction(P, 1, "x", epoch=5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verified(cluster, in_transaction(P, 0, "next", epoch=5)) == 3


@rule("log 3.7", "log 6.10", "group 6.13", "bug 9144")
def test_a_fenced_coordinator_is_fenced_after_a_change_of_leader_too() -> None:
    cluster = led_cluster()
    end(cluster, P, coordinator=9)
    cluster.elect(2, (1, 2))
    cluster.wait_led(2)
    assert code_of(end, cluster, P, node=2, coordinator=8) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_queued_markers_are_judged_and_counted_before_they_are_written() -> None:
    """A batch that comes behind a marker in the queue does not find the transaction open."""
    cluster = led_cluster()
    node = cluster.nodes[1]
    records = in_transaction(P, 0, "a")
    guard = guard_for(node, records)

    async def run() -> list[ErrorCode | int]:
        path = node.produce_path
        first = path.append(TOPIC_ID, 0, records, acks=-1, timeout_ms=5_000, verified=Verified(guard))
        marker = path.append_end_txn_marker(TOPIC_ID, 0, EndTransaction(P, 0, True, 0), timeout_ms=5_000)
        found: list[ErrorCode | int] = []
        try:
            late = in_transaction(P, 1, "late")
            path.append(TOPIC_ID, 0, late, acks=-1, timeout_ms=5_000, verified=Verified(None))
        except ApiError as error:
            found.append(error.code)
        return [*found, (await first).base_offset, (await marker).base_offset]

    assert node.run(run()) == [INVALID_TXN, 0, 1]
    assert len(node.replicas[TOPIC_ID, 0].sequences) == 0


@rule("storage 5.4", "group 6.18")
@pytest.mark.parametrize("from_disk", [False, True])
def test_what_a_read_committed_consumer_gets(from_disk: bool) -> None:
    cluster = led_cluster(**({"tail_bytes": 0} if from_disk else {}))
    verified(cluster, in_transaction(P, 0, "aborted"))
    verified(cluster, in_transaction(Q, 0, "committed"))
    end(cluster, P)
    answer = cluster.fetch(1, 0, isolation_level=COMMITTED)
    assert (answer.high_watermark, answer.last_stable_offset) == (3, 1), "Q's transaction is open since offset 1"
    assert values_of(whole(answer.records)) == ["aborted"] and told(answer) == [(P, 0)]
    end(cluster, Q, committed=True)
    cluster.produce(1, "plain")
    answer = cluster.fetch(1, 0, isolation_level=COMMITTED)
    assert answer.last_stable_offset == answer.high_watermark == 5
    assert [header.base_offset for header in headers(whole(answer.records))] == [0, 1, 2, 3, 4]
    assert answer.aborted_transactions == (AbortedTransaction(producer_id=P, first_offset=0),)
    assert told(cluster.fetch(1, 1, isolation_level=COMMITTED)) == [], "nothing of an aborted transaction is there"
    uncommitted = cluster.fetch(1, 0)
    assert told(uncommitted) == [] and len(uncommitted.records) == len(answer.records)


@rule("group 6.18")
def test_the_last_offset_of_a_read_committed_consumer_is_the_last_stable_one() -> None:
    cluster = led_cluster()
    cluster.produce(1, "plain")
    verified(cluster, in_transaction(P, 0, "a"))
    node = cluster.nodes[1]

    def latest(isolation: Isolation) -> int:
        return node.run(list_offset(node.replicas[TOPIC_ID, 0], 0, LATEST, -1, isolation)).offset

    assert [latest(Isolation.HIGH_WATERMARK), latest(Isolation.LAST_STABLE_OFFSET)] == [2, 1]
    end(cluster, P)
    assert [latest(Isolation.HIGH_WATERMARK), latest(Isolation.LAST_STABLE_OFFSET)] == [3, 3]


@pytest.mark.parametrize("min_bytes", [1, 100])
def test_a_waiting_fetch_wakes_when_the_transaction_ends_and_not_before(min_bytes: int) -> None:
    cluster = led_cluster()
    verified(cluster, in_transaction(P, 0, "a" * 100))
    node = cluster.nodes[1]
    target = FetchTarget(TOPIC_ID, FetchPartition(index=0, fetch_offset=0, max_bytes=1 << 20))

    async def run() -> tuple[list[bool], FetchPartitionResponse]:
        params = FetchParams(max_wait_ms=60_000, min_bytes=min_bytes, max_bytes=1 << 20, isolation_level=COMMITTED)
        waiting = asyncio.ensure_future(node.fetch_path.fetch(FetchContext((target,), None), params))
        done = []
        plain = encode_batch([Record(0, 0, None, b"x" * 200, ())])
        await node.produce_path.append(TOPIC_ID, 0, plain, acks=-1, timeout_ms=5_000)
        await asyncio.sleep(1)
        done.append(waiting.done())
        ending = EndTransaction(P, 0, True, 0)
        await node.produce_path.append_end_txn_marker(TOPIC_ID, 0, ending, timeout_ms=5_000)
        await asyncio.sleep(1)
        done.append(waiting.done())
        return done, (await waiting)[0][0]

    done, answer = node.run(run())
    assert done == [False, True]
    assert len(headers(whole(answer.records))) == 3


@rule("log 3.5")
def test_an_ended_transaction_is_stable_once_its_marker_is_replicated() -> None:
    cluster = led_cluster()
    verified(cluster, in_transaction(P, 0, "a"))
    core, log = cluster.core(1), cluster.nodes[1].log()
    end(cluster, P)
    assert core.last_stable_offset == 2
    assert log.view.unstable.first(1) == 0 and log.view.unstable.first(2) == NEVER


def test_a_new_leader_has_the_open_transaction_and_the_aborted_ones() -> None:
    cluster = led_cluster()
    verified(cluster, in_transaction(P, 0, "aborted"))
    end(cluster, P)
    verified(cluster, in_transaction(Q, 0, "open"))
    cluster.elect(2, (1, 2))
    cluster.wait_led(2)
    cluster.produce(2, "plain")
    answer = cluster.fetch(2, 0, isolation_level=COMMITTED)
    assert (answer.last_stable_offset, answer.high_watermark) == (2, 4)
    assert told(answer) == [(P, 0)]
    assert write(cluster, in_transaction(Q, 1, "more"), None, node=2) == 4
