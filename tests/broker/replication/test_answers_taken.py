"""Which answers a follower takes: those to a fetch of the leadership that it follows now, up to that epoch."""

from __future__ import annotations

from collections.abc import Callable

from replica_cluster import TOPIC_ID, ReplicaCluster, batch

from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.records import headers
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.turn import Turn
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replication.fetch_position import FetchPosition
from quorumlog_broker.replication.fetcher import Fetcher
from quorumlog_broker.replication.follower import verified_batches
from quorumlog_broker.replication.leader_end_point import OnFetched
from quorumlog_storage.segment.batch import stamped_batches
from tests.rules import rule

KEY: PartitionKey = (TOPIC_ID, 0)


def stored(base: int, epoch: int, *values: str) -> bytes:
    """A batch as the leader of `epoch` stores it."""
    data = batch(*values)
    return b"".join(part for one in stamped_batches(data, headers(data), base, epoch) for part in one.parts)


def position(leader_epoch: int, offset: int = 0) -> FetchPosition:
    return FetchPosition(key=KEY, leader_epoch=leader_epoch, offset=offset, last_epoch=-1, log_start=0)


@rule("storage 1.17")
def test_batches_above_the_epoch_of_the_fetch_are_left_out() -> None:
    records = stored(0, 3, "a") + stored(1, 4, "b") + stored(2, 5, "c")
    assert [one.leader_epoch for one in verified_batches(records, 5)] == [3, 4, 5]
    assert [one.leader_epoch for one in verified_batches(records, 4)] == [3, 4]
    assert verified_batches(records, 2) == []


@rule("storage 6.6")
def test_an_answer_to_a_fetch_of_an_older_leadership_changes_nothing() -> None:
    """The log follows in a later epoch by the time that the answer is handed over."""
    cluster = ReplicaCluster(nodes=(1, 2))
    cluster.create_topic((1, 2))
    cluster.wait_led(1)
    cluster.produce(1, "a")
    cluster.run_for(1_000)
    node = cluster.nodes[2]
    epoch = cluster.core(2).leader_epoch
    answer = FetchPartitionResponse(index=0, high_watermark=1, records=stored(1, epoch - 1, "late"))
    done: list[FetchPosition] = []
    old = position(epoch - 1, offset=1)
    node.data_plane.follower.take(old, answer, done.append)
    cluster.run_for(100)
    assert node.log_values() == ["a"] and not old.busy and not done
    current = position(epoch, offset=1)
    node.data_plane.follower.take(current, FetchPartitionResponse(index=0, records=stored(1, epoch, "b")), done.append)
    cluster.run_for(100)
    assert node.log_values() == ["a", "b"] and done == [current]


class HeldLeader:
    """Answers the first fetch only when it is told to."""

    def __init__(self) -> None:
        self.requests: list[FetchRequest] = []
        self._ended: list[OnFetched] = []

    def fetch(self, request: FetchRequest, timeout_ms: int, ended: OnFetched) -> Callable[[], None]:
        self.requests.append(request)
        self._ended.append(ended)
        return lambda: None

    def release(self) -> None:
        answer = FetchPartitionResponse(index=0, high_watermark=0, records=stored(0, 4, "a"))
        topics = (FetchTopicResponse(topic_id=TOPIC_ID, partitions=(answer,)),)
        self._ended[0](FetchResponse(topics=topics, session_id=0), None)


class Taken:
    """A sink that only notes what it gets."""

    def __init__(self) -> None:
        self.positions: list[FetchPosition] = []

    def take(
        self, position: FetchPosition, answer: FetchPartitionResponse, done: Callable[[FetchPosition], None]
    ) -> None:
        self.positions.append(position)


def taken_after(replace_by: FetchPosition | None) -> tuple[list[FetchPosition], FetchPosition]:
    """A partition is fetched and, before the answer comes, followed anew at `replace_by`."""
    scheduler = Scheduler(1)
    loop = SimLoop(scheduler, "follower")
    leader, sink, first = HeldLeader(), Taken(), position(4)
    fetcher = Fetcher(
        node_id=2,
        leader=leader,
        take=sink.take,
        clock=SimClock(scheduler),
        turn=Turn(),
        config=ReplicationConfig(),
        broker_epoch=lambda: 1,
    )
    loop.deliver(fetcher.add, first)
    scheduler.run_until(scheduler.now_ns + NS_PER_MS)
    assert len(leader.requests) == 1
    if replace_by is not None:
        loop.deliver(fetcher.remove, KEY)
        loop.deliver(fetcher.add, replace_by)
    loop.deliver(leader.release)
    scheduler.run_until(scheduler.now_ns + NS_PER_MS)
    fetcher.stop()
    loop.kill()
    return sink.positions, first


def test_an_answer_to_a_position_that_was_replaced_is_not_taken() -> None:
    """Partitions are being added, so the fetch under way is not cancelled: its answer comes."""
    positions, first = taken_after(replace_by=None)
    assert positions and positions[0] is first
    positions, _ = taken_after(replace_by=position(5))
    assert positions == []
