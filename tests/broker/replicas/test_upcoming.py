"""Requests for a partition that the metadata gives to this broker, while its log is not ready: they wait, in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.partition.events import LeaderElected, LogFailed
from quorumlog_broker.partition.partition import Role
from quorumlog_broker.produce.pending_append import AppendResult
from quorumlog_broker.replicas import upcoming

LATEST = -1
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def ask(node: Node, records: bytes, *, acks: int = -1, timeout_ms: int = 5_000) -> Awaitable[AppendResult] | ApiError:
    """As the handler of Produce does it."""

    def begin(left_ms: int) -> Awaitable[AppendResult]:
        return node.produce_path.append(TOPIC_ID, 0, records, acks=acks, timeout_ms=left_ms)

    try:
        return begin(timeout_ms)
    except ApiError as error:
        return node.data_plane.upcoming.later(error, (TOPIC_ID, 0), len(records), timeout_ms, begin) or error


async def answer(pending: Awaitable[AppendResult | int] | ApiError) -> int | ErrorCode:
    """The base offset of an append, the low watermark of a deletion, or an error."""
    if isinstance(pending, ApiError):
        return ErrorCode(pending.code)
    try:
        done = await pending
        return done.base_offset if isinstance(done, AppendResult) else done
    except ApiError as error:
        return ErrorCode(error.code)


def produce(node: Node, *batches: bytes, **how: Any) -> list[int | ErrorCode]:
    """All are sent before the first is answered."""

    async def send() -> list[int | ErrorCode]:
        sent = [ask(node, one, **how) for one in batches]
        return [await answer(one) for one in sent]

    return node.run(send())


def fetch_all(node: Node, partitions: int, max_wait_ms: int) -> list[FetchPartitionResponse]:
    targets = tuple(
        FetchTarget(TOPIC_ID, FetchPartition(index=index, fetch_offset=0, max_bytes=1 << 20))
        for index in range(partitions)
    )

    async def read() -> list[FetchPartitionResponse]:
        params = FetchParams(max_wait_ms, 1, 1 << 20)
        return (await node.fetch_path.fetch(FetchContext(targets, None), params))[0]

    return node.run(read())


def fetch(node: Node, max_wait_ms: int) -> FetchPartitionResponse:
    return fetch_all(node, 1, max_wait_ms)[0]


def latest(node: Node, timeout_ms: int) -> tuple[int, int]:
    """Error code and offset."""
    queries, deadline_ms = node.data_plane.offset_queries, node.clock.now_ms() + timeout_ms
    found = node.run(queries.list_offset(TOPIC_ID, 0, LATEST, deadline_ms=deadline_ms))
    return found.error_code, found.offset


def end_of_epoch(node: Node, epoch: int, timeout_ms: int) -> tuple[int, int]:
    """Error code and offset."""
    queries, deadline_ms = node.data_plane.offset_queries, node.clock.now_ms() + timeout_ms
    found = node.run(queries.end_of_epoch(TOPIC_ID, 0, epoch, -1, deadline_ms=deadline_ms))
    return found.error_code, found.end_offset


def producers(node: Node, timeout_ms: int) -> int:
    """Error code."""
    deadline_ms = node.clock.now_ms() + timeout_ms
    return node.run(node.data_plane.producer_report.describe("t", 0, deadline_ms)).error_code


class Held:
    """A node whose logs are made ready to be led only by `release`."""

    def __init__(self, cluster: ReplicaCluster, node_id: int = 1) -> None:
        self.node = cluster.nodes[node_id]
        self._leaderships: Any = self.node.data_plane._leaderships
        self._prepare, self._held = self._leaderships.prepare, []
        self._leaderships.prepare = lambda *what, **how: self._held.append((what, how))

    def release(self) -> None:
        self._leaderships.prepare = self._prepare
        for what, how in self._held:
            self._prepare(*what, **how)

    def release_in(self, delay_ms: int) -> None:
        self.node.loop.call_later(delay_ms / 1000, self.release)


def test_the_first_writes_of_a_new_topic_are_taken_in_their_order() -> None:
    """They come while the metadata is known, and no replica has been made yet."""
    cluster = ReplicaCluster()
    node = cluster.nodes[1]
    node.data_plane.upcoming.newest = lambda: cluster.image
    cluster.create_topic()
    assert (TOPIC_ID, 0) not in node.replicas
    assert produce(node, *[batch(str(number)) for number in range(20)]) == list(range(20))
    assert node.log_values() == [str(number) for number in range(20)]
    assert len(node.data_plane.delayed.leaders) == 0


def held_cluster() -> tuple[ReplicaCluster, Held]:
    """Node 1 is named as the leader, and its log is not ready."""
    cluster = ReplicaCluster()
    held = Held(cluster)
    cluster.create_topic()
    cluster.run_for(200)
    assert held.node.replicas[TOPIC_ID, 0].core.role is Role.LEADER
    return cluster, held


def test_what_comes_once_the_log_is_ready_overtakes_nothing() -> None:
    _, held = held_cluster()
    held.release_in(300)
    node, seen = held.node, []
    node.data_plane.stepper.on(LeaderElected, lambda *_: seen.append(produced.append(ask(node, batch("late")))))
    produced: list[Awaitable[AppendResult] | ApiError] = []

    async def send() -> list[int | ErrorCode]:
        early = [ask(node, batch(f"early {number}")) for number in range(3)]
        found = [await answer(one) for one in early]
        return [*found, await answer(produced[0])]

    assert node.run(send()) == [0, 1, 2, 3]
    assert node.log_values() == ["early 0", "early 1", "early 2", "late"]


def test_a_request_waits_for_no_longer_than_it_says() -> None:
    _, held = held_cluster()
    begun_ms = held.node.clock.now_ms()
    assert produce(held.node, batch("a"), timeout_ms=700) == [NOT_LEADER]
    assert 700 <= held.node.clock.now_ms() - begun_ms < 800
    assert produce(held.node, batch("b"), timeout_ms=0) == [NOT_LEADER]
    assert fetch(held.node, 0).error_code == NOT_LEADER
    assert fetch(held.node, 300).error_code == NOT_LEADER
    assert latest(held.node, 0) == (NOT_LEADER, -1)
    held.release_in(0)
    assert produce(held.node, batch("c")) == [0]
    assert held.node.log_values() == ["c"], "what was refused is not appended later"


@pytest.mark.parametrize(("limit", "value"), [("MAX_WAITING", 2), ("MAX_WAITING_BYTES", 2 * len(batch("x")) + 1)])
def test_what_waits_has_limits(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upcoming, limit, value)
    _, held = held_cluster()
    held.release_in(100)
    assert produce(held.node, *[batch("x")] * 3) == [0, 1, NOT_LEADER]
    assert produce(held.node, *[batch("x")] * 3) == [2, 3, 4], "the room is given back"


def test_what_is_cancelled_is_dropped_with_its_bytes() -> None:
    """All of a request, although only its first partition is awaited when it happens."""
    _, held = held_cluster()
    node, waits = held.node, held.node.data_plane.upcoming

    async def handler(sent: list[Awaitable[AppendResult] | ApiError]) -> None:
        try:
            for one in sent:
                await answer(one)
        finally:
            upcoming.give_up(sent)

    async def cancel() -> None:
        task = asyncio.ensure_future(handler([ask(node, batch("a")), ask(node, batch("b"))]))
        await asyncio.sleep(0.1)
        assert waits._waiting == 2 and waits._waiting_bytes == 2 * len(batch("a"))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    node.run(cancel())
    assert (waits._waiting, waits._waiting_bytes, len(node.data_plane.delayed.leaders)) == (0, 0, 0)
    held.release_in(0)
    assert produce(node, batch("c")) == [0]
    assert node.log_values() == ["c"]


def test_requests_that_are_cancelled_in_the_turn_that_makes_the_log_ready_are_dropped_all() -> None:
    """One of a stream that was dropped, and the next one that was not, would leave a hole in what a client has sent."""
    _, held = held_cluster()
    node, core = held.node, held.node.replicas[TOPIC_ID, 0].core

    async def cancel() -> None:
        tasks = [asyncio.ensure_future(answer(ask(node, batch(one)))) for one in "ab"]
        await asyncio.sleep(0.1)

        def leave(_: object) -> None:
            for task in tasks if core.ready else ():
                task.cancel()

        node.data_plane.stepper.on_changed(leave)  # before the effects of the step
        held.release()
        await asyncio.gather(*tasks, return_exceptions=True)

    node.run(cancel())
    assert node.data_plane.upcoming._waiting == 0
    assert produce(node, batch("c")) == [0]
    assert node.log_values() == ["c"]


def test_readers_wait_for_the_log_as_well() -> None:
    _, held = held_cluster()
    held.release_in(200)
    found = fetch(held.node, 1_000)
    assert (found.error_code, found.high_watermark) == (ErrorCode.NONE, 0)
    _, held = held_cluster()
    held.release_in(200)
    assert latest(held.node, 1_000) == (ErrorCode.NONE, 0)


def test_where_an_epoch_ends_is_answered_once_the_log_is_ready() -> None:
    cluster, held = held_cluster()
    assert end_of_epoch(held.node, 0, 100) == (NOT_LEADER, -1), "no longer than it may"
    held.release_in(200)
    assert end_of_epoch(held.node, cluster.core(1).leader_epoch, 1_000) == (ErrorCode.NONE, 0)


def test_producers_are_described_once_the_log_is_open() -> None:
    _, held = held_cluster()
    assert producers(held.node, 100) == NOT_LEADER, "as in Kafka; no disk has failed"
    held.release_in(200)
    assert producers(held.node, 1_000) == ErrorCode.NONE
    cluster = ReplicaCluster()
    cluster.nodes[1].data_plane.upcoming.newest = lambda: cluster.image
    cluster.create_topic()
    assert producers(cluster.nodes[1], 1_000) == ErrorCode.NONE
    assert producers(cluster.nodes[1], 0) == ErrorCode.NONE


def deletion(node: Node, timeout_ms: int) -> Awaitable[int] | ApiError:
    """Of all that is committed."""
    try:
        return node.data_plane.delete_path.delete(TOPIC_ID, 0, -1, timeout_ms)
    except ApiError as error:
        return error


def test_a_deletion_waits_in_its_order() -> None:
    """Behind the append before it, which nothing has committed then: there is nothing to delete."""
    _, held = held_cluster()
    node = held.node
    held.release_in(200)

    async def send() -> list[int]:
        asked = [ask(node, batch("a"), acks=1), deletion(node, 5_000), ask(node, batch("b"), acks=1)]
        return [await answer(one) for one in asked]

    assert node.run(send()) == [0, 0, 1]
    _, held = held_cluster()

    async def delete(timeout_ms: int) -> int:
        return await answer(deletion(held.node, timeout_ms))

    assert [held.node.run(delete(timeout_ms)) for timeout_ms in (300, 0)] == [NOT_LEADER, NOT_LEADER]


def test_a_fetch_that_has_something_else_to_read_does_not_wait() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=2)
    cluster.wait_led(1)
    cluster.produce(1, "there")
    held = Held(cluster)
    cluster.elect(2, (1, 2, 3), 1)
    cluster.run_for(100)
    cluster.elect(1, (1, 2, 3), 1)
    cluster.run_for(100)
    begun_ms = held.node.clock.now_ms()
    found = [one.error_code for one in fetch_all(held.node, 2, 1_000)]
    assert found == [ErrorCode.NONE, NOT_LEADER] and held.node.clock.now_ms() - begun_ms < 100


def test_a_leader_that_is_replaced_before_it_was_ready_refuses_at_once() -> None:
    cluster, held = held_cluster()
    held.node.loop.call_later(0.1, lambda: cluster.elect(2, (1, 2, 3)))
    begun_ms = held.node.clock.now_ms()
    assert produce(held.node, batch("a"), batch("b")) == [NOT_LEADER, NOT_LEADER]
    assert held.node.clock.now_ms() - begun_ms < 500


def test_an_epoch_that_comes_before_the_log_was_ready_keeps_what_waits() -> None:
    cluster, held = held_cluster()
    held.node.loop.call_later(0.1, lambda: cluster.elect(1, (1, 2, 3)))
    held.release_in(300)
    assert produce(held.node, batch("a"), batch("b")) == [0, 1]


def test_a_log_that_cannot_be_made_is_told_at_once() -> None:
    _, held = held_cluster()
    node = held.node
    node.loop.call_later(0.1, lambda: node.data_plane.stepper.step(node.replicas[TOPIC_ID, 0], LogFailed()))
    begun_ms = node.clock.now_ms()
    assert produce(node, batch("a")) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert node.clock.now_ms() - begun_ms < 500
    assert produce(node, batch("b")) == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_other_refusals_are_not_waited_for() -> None:
    cluster, held = held_cluster()
    begun_ms = held.node.clock.now_ms()
    assert produce(cluster.nodes[2], batch("a")) == [NOT_LEADER]
    error = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    assert held.node.data_plane.upcoming.key_of(error, TOPIC_ID, 9) is None
    assert held.node.data_plane.upcoming.key_of(error, "nobody", 0) is None
    assert held.node.data_plane.upcoming.key_of(ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, ""), TOPIC_ID, 0) is None
    assert held.node.clock.now_ms() - begun_ms < 100


def test_a_leadership_of_an_earlier_life_is_not_waited_for() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.kill(1)
    node = cluster.boot(1)  # not registered yet
    cluster.run_for(300)
    assert node.data_plane.upcoming.key_of(ApiError(NOT_LEADER, ""), TOPIC_ID, 0) is None
