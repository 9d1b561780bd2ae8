"""The runtime of group coordinators: over replicas that are led, lost, cut off and loaded again."""

from __future__ import annotations

import pytest
from coordinator_cluster import CALLER, TOPIC_ID, CoordinatorCluster, commit, join
from replica_cluster import fail_writes_of

from quorumlog.configs.topic import RETENTION_PAUSED
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import OffsetFetchGroup
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.records import headers
from quorumlog.settings.groups import GroupConfig
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime import coordinators
from quorumlog_broker.coordinator.runtime.coordinators import LOAD_WAIT_MS
from quorumlog_broker.coordinator.runtime.group_coordinator import State
from quorumlog_broker.coordinator.runtime.loading import RECORDS_A_TURN
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT
from tests.rules import rule


def refused(cluster: CoordinatorCluster, node_id: int = 1) -> ErrorCode:
    """How a read is refused at once."""
    with pytest.raises(ApiError) as refusal:
        cluster.begin(GroupShard.fetch_offsets, OffsetFetchGroup(group_id="g"), node_id)
    return refusal.value.code


def test_a_group_joins_commits_and_fetches() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    member, generation = cluster.member()
    assert cluster.heartbeat(member, generation) == 0
    assert cluster.commit_offset(7, group="simple") == 0
    assert cluster.fetched(group="simple") == 7
    assert cluster.fetched(group="other") == -1


def test_offsets_of_a_restored_cluster_expire_only_once_the_hold_is_released() -> None:
    """The same sweep expires transactional ids at their coordinators."""
    config = GroupConfig(
        initial_rebalance_delay_ms=0, offsets_retention_ms=1_000, offsets_retention_check_interval_ms=500
    )
    cluster = CoordinatorCluster(config=config)
    cluster.create()

    def hold(value: str | None) -> None:
        one = ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name=CLUSTER_DEFAULT, name=RETENTION_PAUSED, value=value
        )
        cluster.commit(one)

    hold("true")
    assert cluster.commit_offset(7, group="simple") == 0
    cluster.run_for(5_000)
    assert cluster.fetched(group="simple") == 7
    hold(None)
    cluster.run_for(2_000)
    assert cluster.fetched(group="simple") == -1


def test_another_broker_goes_on_where_the_first_one_stopped() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    member, generation = cluster.member()
    assert cluster.commit_offset(7, group="simple") == 0
    cluster.kill(1)
    cluster.fail_over(2)
    assert cluster.fetched(2, group="simple") == 7
    assert cluster.heartbeat(member, generation, 2) == 0
    assert cluster.commit_offset(8, 2, group="simple") == 0
    assert cluster.fetched(2, group="simple") == 8


@rule("group 1.7")
def test_an_answer_waits_for_the_high_watermark() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    cluster.kill(2)
    cluster.kill(3)
    pending = cluster.begin(GroupShard.commit_offsets, commit(7))
    read = cluster.begin(GroupShard.fetch_offsets, OffsetFetchGroup(group_id="g"))
    cluster.run_for(500)  # less than the followers may lag
    assert cluster.nodes[1].log().end_offset == 1
    assert not pending.is_settled and not read.is_settled
    cluster.run_for(2_000)  # the leader is alone in the ISR now
    assert pending.is_settled and read.is_settled
    assert cluster.ended(read).topics[0].partitions[0].committed_offset == 7


@rule("group 1.7", "bug 20634")
def test_a_call_is_not_acknowledged_by_the_watermark_of_another_epoch() -> None:
    """KAFKA-20634: what this leader appended may be cut, whatever the watermark of the next one says."""
    cluster = CoordinatorCluster()
    cluster.create()
    cluster.kill(2)
    cluster.kill(3)
    pending = cluster.begin(GroupShard.commit_offsets, commit(7))
    cluster.elect(1, (1, 2, 3))  # again, in another epoch
    cluster.wait_led(1)
    with pytest.raises(ApiError) as refusal:
        cluster.ended(pending)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR


@rule("group 1.8", "bug redpanda 9571")
def test_a_call_that_is_not_committed_in_time_is_refused_and_stays_applied() -> None:
    cluster = CoordinatorCluster(config=GroupConfig(initial_rebalance_delay_ms=0, offsets_commit_timeout_ms=300))
    cluster.create()
    cluster.kill(2)
    cluster.kill(3)
    pending = cluster.begin(GroupShard.commit_offsets, commit(7))
    with pytest.raises(ApiError) as refusal:
        cluster.ended(pending)
    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    cluster.run_for(3_000)
    assert cluster.fetched() == 7


def test_only_so_many_calls_wait() -> None:
    cluster = CoordinatorCluster(config=GroupConfig(initial_rebalance_delay_ms=0, max_waiting_calls=2))
    cluster.create()
    cluster.kill(2)
    cluster.kill(3)
    waiting = [cluster.begin(GroupShard.commit_offsets, commit(number)) for number in (1, 2)]
    with pytest.raises(ApiError) as refusal:
        cluster.begin(GroupShard.commit_offsets, commit(3))
    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE and refusal.value.code.retriable
    cluster.run_for(3_000)  # the leader is alone in the ISR now
    assert all(one.is_settled for one in waiting)
    assert cluster.fetched() == 2


def test_only_so_many_requests_wait_for_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "MAX_WAITING_FOR_LOADS", 2)
    cluster = loaded_with(2_000)
    cluster.elect(2, (1, 2, 3))
    cluster.run_until(lambda: cluster.state(2) is State.LOADING)
    loop = cluster.nodes[2].loop
    waiting = [loop.create_task(cluster.of_node[2].until_loaded("g")) for _ in range(3)]
    cluster.run_until(lambda: waiting[2].done())
    assert cluster.state(2) is State.LOADING and not waiting[0].done() and not waiting[1].done()
    cluster.wait_active(2)
    cluster.run_until(lambda: all(one.done() for one in waiting))


@rule("bug 5351")
def test_without_enough_replicas_records_are_refused_and_members_live_on() -> None:
    cluster = CoordinatorCluster()
    cluster.create(min_insync_replicas="2")
    member, generation = cluster.member()
    cluster.kill(2)
    cluster.kill(3)
    cluster.run_for(3_000)
    with pytest.raises(ApiError) as refusal:
        cluster.commit_offset(7, group="simple")
    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert cluster.heartbeat(member, generation) == 0
    cluster.start(2)
    cluster.run_for(3_000)
    assert cluster.commit_offset(7, group="simple") == 0


def test_a_broker_that_may_be_deposed_reads_behind_a_record() -> None:
    """Where another one leads, that is never committed. Here it is: no controller was there, and nothing else."""
    cluster = CoordinatorCluster()
    cluster.create()
    assert cluster.commit_offset(7) == 0 and cluster.fetched() == 7
    cluster.out_of_service = {1}
    end = cluster.nodes[1].log().end_offset
    assert cluster.fetched() == 7 and cluster.fetched(group="h") == -1
    assert cluster.nodes[1].log().end_offset == end + 2
    cluster.out_of_service = set()
    assert cluster.fetched() == 7 and cluster.nodes[1].log().end_offset == end + 2
    cluster.elect(2, (1, 2, 3))
    cluster.wait_active(2)
    assert cluster.fetched(2) == 7 and [one.group_id for one in cluster.listed(2)] == ["g"]


def test_an_offset_that_may_be_out_of_date_is_not_told() -> None:
    """It is cut off, and another broker may have acknowledged later ones."""
    cluster = CoordinatorCluster(config=GroupConfig(initial_rebalance_delay_ms=0, offsets_commit_timeout_ms=300))
    cluster.create()
    assert cluster.commit_offset(7) == 0
    cluster.kill(2)
    cluster.kill(3)
    assert cluster.fetched() == 7
    cluster.out_of_service = {1}
    pending = [cluster.begin(GroupShard.fetch_offsets, OffsetFetchGroup(group_id="g")) for _ in range(2)]
    for one in pending:
        with pytest.raises(ApiError) as refusal:
            cluster.ended(one)
        assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@rule("group 1.5", "bug 10614")
def test_a_deposed_coordinator_says_so() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    cluster.member()
    waiting = cluster.begin(GroupShard.join, join(cluster.ask(GroupShard.join, join()).member_id))
    assert not waiting.is_settled  # for the member that is there
    cluster.elect(2, (1, 2, 3))
    cluster.wait_active(2)
    assert refused(cluster, 1) is ErrorCode.NOT_COORDINATOR
    with pytest.raises(ApiError) as refusal:
        cluster.ended(waiting)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR


def loaded_with(records: int) -> CoordinatorCluster:
    cluster = CoordinatorCluster()
    cluster.create()

    async def fill() -> None:
        coordinator = cluster.coordinator()
        for number in range(records):
            coordinator.call(GroupShard.commit_offsets, CALLER, commit(number, index=number % 100))

    cluster.nodes[1].run(fill())
    cluster.run_for(1_000)
    assert cluster.nodes[2].log().end_offset == records
    return cluster


def test_the_calls_of_one_turn_leave_as_one_batch() -> None:
    cluster = loaded_with(50)
    log = cluster.nodes[1].log()
    assert len(headers(log.read(0, 1 << 20, upper_bound=log.end_offset))) == 1


@rule("group 1.5", "bug 5600")
def test_calls_are_refused_until_the_log_is_loaded_in_short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = loaded_with(2_000)
    in_step: dict[int, int] = {}
    replay = GroupShard.replay_bytes

    def counted(shard: GroupShard, offset: int, key: bytes, value: bytes | None, producer_id: int) -> None:
        step = cluster.scheduler.steps
        in_step[step] = in_step.get(step, 0) + 1
        replay(shard, offset, key, value, producer_id)

    monkeypatch.setattr(GroupShard, "replay_bytes", counted)
    cluster.elect(2, (1, 2, 3))
    cluster.run_until(lambda: cluster.state(2) is State.LOADING)
    assert refused(cluster, 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    cluster.wait_active(2)
    assert sum(in_step.values()) == 2_000
    assert max(in_step.values()) <= RECORDS_A_TURN
    assert cluster.fetched(2) == 1_900


@rule("bug 15910")
def test_a_request_waits_a_moment_for_the_load() -> None:
    cluster = loaded_with(2_000)
    cluster.elect(2, (1, 2, 3))
    cluster.run_until(lambda: cluster.state(2) is State.LOADING)
    began_ns = cluster.scheduler.now_ns
    cluster.nodes[2].run(cluster.of_node[2].until_loaded("g"))
    assert cluster.scheduler.now_ns - began_ns < LOAD_WAIT_MS * 1_000_000
    assert cluster.state(2) is State.ACTIVE and cluster.fetched(2) == 1_900


def test_a_request_waits_for_no_longer_than_a_moment() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    cluster.kill(2)
    cluster.kill(3)
    cluster.begin(GroupShard.commit_offsets, commit(7))
    cluster.elect(1, (1, 2, 3))  # the end of the load cannot be committed before the ISR shrinks
    cluster.run_until(lambda: cluster.state(1) is State.LOADING)
    began_ns = cluster.scheduler.now_ns
    cluster.nodes[1].run(cluster.of_node[1].until_loaded("g"))
    assert cluster.scheduler.now_ns - began_ns <= LOAD_WAIT_MS * 1_000_000
    cluster.nodes[1].run(cluster.of_node[1].until_loaded("elsewhere"))


@rule("bug 10614")
def test_a_load_that_a_resignation_overtakes_stops() -> None:
    cluster = loaded_with(2_000)
    cluster.elect(2, (1, 2, 3))
    cluster.run_until(lambda: cluster.state(2) is State.LOADING)
    first = cluster.of_node[2].all[0]
    waiting = cluster.nodes[2].loop.create_task(cluster.of_node[2].until_loaded("g"))
    cluster.elect(3, (1, 2, 3))
    cluster.wait_active(3)
    cluster.run_for(50)
    assert waiting.done()  # it is told at once that its coordinator is elsewhere
    assert first.state is State.CLOSED and not cluster.of_node[2].all
    cluster.run_for(1_000)
    assert first.state is State.CLOSED
    assert cluster.fetched(3) == 1_900


@rule("group 1.9", "bug 15910")
def test_what_a_new_coordinator_loads_is_served_once_it_is_committed() -> None:
    """A record above the high watermark may be cut by the next failover."""
    cluster = CoordinatorCluster()
    cluster.create()
    assert cluster.commit_offset(1) == 0
    cluster.kill(3)
    cluster.kill(1)
    cluster.elect(2, (2, 3))
    cluster.wait_led(2)
    cluster.wait_active(2)
    pending = cluster.begin(GroupShard.commit_offsets, commit(2), 2)
    cluster.elect(2, (2, 3))
    cluster.wait_led(2)
    cluster.run_for(300)
    assert pending.is_settled
    assert refused(cluster, 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    cluster.run_for(3_000)
    assert cluster.fetched(2) == 2


def test_a_session_ends_by_the_clock_of_the_node() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    member, generation = cluster.member()
    cluster.run_for(9_000)
    assert cluster.heartbeat(member, generation) == 0
    cluster.run_for(11_000)
    assert cluster.heartbeat(member, generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_expire_in_all_groups() -> None:
    config = GroupConfig(offsets_retention_ms=20_000, offsets_retention_check_interval_ms=5_000)
    cluster = CoordinatorCluster(config=config)
    cluster.create()
    for number in range(150):
        assert cluster.commit_offset(number, group=f"g{number}") == 0
    cluster.run_for(15_000)
    assert cluster.fetched(group="g149") == 149
    cluster.run_for(15_000)
    assert not cluster.listed()


@rule("group 4.9", "bug 2000")
def test_offsets_of_a_deleted_topic_go() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    assert cluster.commit_offset(7) == 0

    async def delete() -> None:
        cluster.of_node[1].topics_deleted([("other", b"o" * 16), ("t", b"t" * 16)])

    cluster.nodes[1].run(delete())
    cluster.run_for(100)
    assert cluster.fetched() == -1


@rule("group 1.5", "bug 10614")
def test_a_coordinator_whose_directory_fails_says_so() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    fail_writes_of(cluster.nodes[1], "/d0")
    pending = cluster.begin(GroupShard.commit_offsets, commit(7))
    with pytest.raises(ApiError) as refusal:
        cluster.ended(pending)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR


@rule("bug 15784")
def test_foreign_records_in_the_log_make_it_load_again() -> None:
    """Its offsets are not those that it decided with, so it must not go on."""
    cluster = CoordinatorCluster()
    cluster.create()
    assert cluster.commit_offset(7) == 0
    cluster.nodes[1].replicas[TOPIC_ID, 0].next_offset += 1
    pending = cluster.begin(GroupShard.commit_offsets, commit(8))
    with pytest.raises(ApiError) as refusal:
        cluster.ended(pending)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR
    cluster.nodes[1].replicas[TOPIC_ID, 0].next_offset -= 1
    cluster.wait_active(1)
    assert cluster.fetched() == 7
    assert cluster.commit_offset(9) == 0
