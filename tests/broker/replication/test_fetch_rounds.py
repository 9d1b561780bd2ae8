"""Fetches of many partitions: what followers name, and that idle partitions stay in sync."""

from __future__ import annotations

import asyncio

import pytest
from replica_cluster import LAG_MS, TOPIC_ID, ReplicaCluster, batch

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic, ForgottenTopic
from quorumlog.messages.metadata_records import BrokerRegistrationChangeRecord, NodeList, PartitionChangeRecord
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.targets import FetchTarget

MANY = 20


def wide_cluster(session_slots: int = 100) -> ReplicaCluster:
    cluster = ReplicaCluster(session_slots=session_slots)
    cluster.create_topic(partitions=MANY)
    for index in range(MANY):
        cluster.wait_led(1, index)
    cluster.run_for(2_000)
    return cluster


def test_idle_partitions_are_not_named() -> None:
    cluster = wide_cluster()
    requests = cluster.nodes[1].requests
    del requests[:]
    cluster.run_for(5_000)
    assert set(requests) == {0}
    del requests[:]
    for number in range(5):
        cluster.produce(1, f"v{number}", index=number)
    cluster.run_for(1_000)
    assert max(requests) == 1 and sum(requests) == 2 * 5, "each of two followers has moved five times"
    for number in range(5):
        assert cluster.nodes[2].log_values(index=number) == [f"v{number}"]
        assert [cluster.core(node, number).high_watermark for node in (1, 2, 3)] == [1, 1, 1]


def test_partitions_that_come_one_by_one_are_named_once_or_twice() -> None:
    """Once, each partition cancelled the fetch before it and had all named again: 9 s for a topic of 1,000."""
    cluster = wide_cluster()
    for index in range(MANY):
        cluster.elect(2, isr=(1, 2, 3), index=index)
        cluster.run_for(5)
    cluster.wait_led(2, MANY - 1)
    cluster.run_for(100)
    followers = 2
    assert MANY * followers <= sum(cluster.nodes[2].requests) <= 2 * MANY * followers
    for index in range(MANY):
        cluster.produce(2, "a", index=index)
        assert cluster.nodes[3].log_values(index=index) == ["a"]


def test_a_partition_that_comes_to_a_waiting_fetcher_is_fetched_at_once() -> None:
    cluster = wide_cluster()
    cluster.elect(2, isr=(1, 2, 3), index=0)
    cluster.run_for(2_000)  # the followers' fetches from node 2 wait for long again
    del cluster.nodes[2].requests[:]
    cluster.elect(2, isr=(1, 2, 3), index=1)
    cluster.run_for(20)
    assert cluster.nodes[2].requests[:2] == [2, 2]


def test_without_room_for_a_session_every_partition_is_named() -> None:
    cluster = wide_cluster(session_slots=0)
    cluster.produce(1, "a", index=3)
    assert set(cluster.nodes[1].requests[-4:]) == {MANY}
    assert cluster.nodes[3].log_values(index=3) == ["a"]


def test_a_session_that_was_evicted_is_begun_again() -> None:
    cluster = wide_cluster()
    node = cluster.nodes[1]
    for session_id in list(node.sessions._sessions):
        node.sessions._end_session(node.sessions._sessions[session_id])
    cluster.produce(1, "a", index=3)
    assert MANY in node.requests
    cluster.run_for(1_000)
    assert node.requests[-1] == 0
    assert cluster.alters == 0


def test_no_follower_leaves_the_isr_of_a_partition_that_was_idle_for_long() -> None:
    """Its first record in a long time may come just before the check for followers that fell behind."""
    cluster = wide_cluster()
    cluster.run_for(LAG_MS * 7)
    for index in range(MANY):
        cluster.run_for(LAG_MS // 19)
        cluster.produce(1, "a", index=index)
    cluster.run_for(LAG_MS * 3)
    assert cluster.alters == 0


def test_a_dead_follower_leaves_the_isr_of_an_idle_partition_with_its_next_record() -> None:
    cluster = wide_cluster()
    cluster.run_for(LAG_MS * 3)
    cluster.kill(3)
    cluster.run_for(LAG_MS * 3)
    cluster.produce(1, "a", index=4, timeout_ms=3 * LAG_MS)
    assert cluster.core(1, 4).isr_state.isr == (1, 2)
    assert cluster.core(1, 5).isr_state.isr == (1, 2, 3), "nothing to catch up with"


def test_a_broker_that_was_fenced_joins_the_isr_of_idle_partitions_again() -> None:
    cluster = wide_cluster()
    node = cluster.nodes[3]
    change = BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=node.broker_epoch, fenced=True)
    removed = [
        PartitionChangeRecord(partition=index, topic_id=TOPIC_ID, isr=NodeList(nodes=(1, 2))) for index in range(MANY)
    ]
    cluster.commit(change, *removed)
    cluster.run_for(1_000)
    assert all(cluster.core(1, index).isr_state.isr == (1, 2) for index in range(MANY))
    cluster.commit(BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=node.broker_epoch, fenced=False))
    cluster.run_for(1_000)
    assert all(cluster.core(1, index).isr_state.isr == (1, 2, 3) for index in range(MANY))


def test_records_deleted_from_an_idle_partition_are_deleted_everywhere() -> None:
    cluster = wide_cluster()
    for value in ("a", "b", "c"):
        cluster.produce(1, value, index=6)
    cluster.run_for(2_000)

    async def delete() -> int:
        return await cluster.nodes[1].data_plane.delete_path.delete(TOPIC_ID, 6, 2, 5_000)

    assert cluster.nodes[1].run(delete()) == 2
    assert [cluster.core(node, 6).log_start for node in (1, 2, 3)] == [2, 2, 2]


# --- a consumer's session ---


class Reader:
    """A consumer with a session at node 1, from offset 0 of every partition."""

    def __init__(self, cluster: ReplicaCluster) -> None:
        self.node = cluster.nodes[1]
        self.id, self.epoch = 0, 0
        self.read: list[int] = []

    async def ask(self, offsets: dict[int, int], wait_ms: int = 0, forget: tuple[int, ...] = ()) -> dict[int, int]:
        """Partition -> bytes of its records, of the responses that were sent."""
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        partitions = tuple(
            FetchPartition(index=index, fetch_offset=offset, max_bytes=1 << 20) for index, offset in offsets.items()
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=(FetchTopic(topic_id=TOPIC_ID, partitions=partitions),) if partitions else (),
            forgotten=(ForgottenTopic(topic_id=TOPIC_ID, partitions=forget),) if forget else (),
            session_id=self.id,
            session_epoch=self.epoch,
        )
        self.epoch += 1
        context = self.node.sessions.begin(request, now_ms)
        if context.incremental is not None:
            params = FetchParams(wait_ms, min_bytes=1, max_bytes=1 << 20)
            responses, has_more = await self.node.fetch_path.fetch(context, params)
        else:
            responses, has_more = [_nothing(one) for one in context.targets], []
        self.read.append(len(responses))
        self.id, sent = self.node.sessions.end(context, responses, has_more, now_ms)
        self.node.sessions.check_invariants()
        return {response.index: len(response.records) for _, response in sent}


def _nothing(target: FetchTarget) -> FetchPartitionResponse:
    return FetchPartitionResponse(index=target.partition.index, high_watermark=0, log_start_offset=0)


def test_a_consumer_is_woken_by_the_high_watermark_and_reads_that_partition_alone() -> None:
    cluster = wide_cluster()
    reader = Reader(cluster)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        await reader.ask(dict.fromkeys(range(MANY), 0))
        assert await reader.ask({}) == {}
        begun = loop.time()
        waiting = asyncio.ensure_future(reader.ask({}, wait_ms=10_000))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await cluster.nodes[1].produce_path.append(TOPIC_ID, 7, batch("a"), acks=-1, timeout_ms=1_000)
        received = await waiting
        assert list(received) == [7] and received[7] > 0
        assert loop.time() - begun < 1
        assert list(await reader.ask({})) == [7], "it has not moved, so it gets them again"
        assert await reader.ask({7: 1}) == {}
        begun = loop.time()
        assert await reader.ask({}, wait_ms=300) == {}
        assert 0.29 < loop.time() - begun < 0.4

    cluster.nodes[1].run(scenario())
    assert reader.read == [MANY, MANY, 1, 1, 1, 0]


def test_a_request_that_was_overtaken_ends_at_once() -> None:
    cluster = wide_cluster()
    reader = Reader(cluster)

    async def scenario() -> None:
        await reader.ask(dict.fromkeys(range(MANY), 0))
        await reader.ask({})
        first = asyncio.ensure_future(reader.ask({}, wait_ms=10_000))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(reader.ask({}, wait_ms=10_000))
        with pytest.raises(ApiError) as caught:
            await first
        assert caught.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
        await cluster.nodes[1].produce_path.append(TOPIC_ID, 2, batch("a"), acks=-1, timeout_ms=1_000)
        assert list(await second) == [2]

    cluster.nodes[1].run(scenario())


def test_a_waiting_consumer_gets_the_error_of_a_deleted_topic() -> None:
    cluster = wide_cluster()
    reader = Reader(cluster)

    async def scenario() -> None:
        await reader.ask({0: 0, 1: 0})
        await reader.ask({})
        waiting = asyncio.ensure_future(reader.ask({}, wait_ms=10_000))
        await asyncio.sleep(0.1)
        cluster.delete_topic()
        assert list(await waiting) == [0, 1]

    cluster.nodes[1].run(scenario())
