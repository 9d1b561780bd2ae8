"""The data plane on simulated machines: produce, replicate, change leaders, lose processes, power and disks."""

from __future__ import annotations

import asyncio

import pytest
from replica_cluster import LAG_MS, TOPIC_ID, ReplicaCluster, batch, fail_writes_of, values_of

from jepsen.sim.machine.disk import SimDisk
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import EpochEndOffset, FetchPartition, FetchPartitionResponse, ReplicaState
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.logdirs import removals
from tests.rules import rule


def led_cluster(**topic: object) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(**topic)  # type: ignore[arg-type]
    cluster.wait_led(1)
    return cluster


def refused(cluster: ReplicaCluster, node: int, **options: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        cluster.produce(node, "x", **options)
    return caught.value.code


# --- produce, replicate, read ---


def test_what_all_in_sync_replicas_have_is_acknowledged_and_read() -> None:
    cluster = led_cluster()
    assert cluster.produce(1, "a", "b") == 0
    assert cluster.produce(1, "c") == 2
    answer = cluster.fetch(1, 0)
    assert (answer.error_code, answer.high_watermark, values_of(bytes(answer.records))) == (0, 3, ["a", "b", "c"])
    for node in cluster.nodes.values():
        assert node.log_values() == ["a", "b", "c"]
    cluster.run_for(1_000)
    assert [cluster.core(node).high_watermark for node in (1, 2, 3)] == [3, 3, 3]


def test_replication_takes_milliseconds_not_the_fetch_wait() -> None:
    cluster = led_cluster()
    cluster.produce(1, "warm")
    before = cluster.scheduler.now_ns
    for number in range(10):
        cluster.produce(1, f"v{number}")
    assert (cluster.scheduler.now_ns - before) / 1e6 < 100


def test_appends_queued_together_keep_their_order_and_are_one_turn() -> None:
    cluster = led_cluster()
    node = cluster.nodes[1]

    async def many() -> list[int]:
        pending = [
            node.produce_path.append(TOPIC_ID, 0, batch(str(number)), acks=-1, timeout_ms=5_000) for number in range(50)
        ]
        return [(await one).base_offset for one in pending]

    assert node.run(many()) == list(range(50))
    assert cluster.nodes[2].log_values() == [str(number) for number in range(50)]


def test_many_partitions_in_several_directories() -> None:
    cluster = ReplicaCluster(directories=2)
    cluster.create_topic(partitions=6)
    for index in range(6):
        cluster.wait_led(1, index)
        cluster.produce(1, f"p{index}", index=index)
    for index in range(6):
        assert cluster.nodes[3].log_values(index=index) == [f"p{index}"]
    held = [one.directory_id for one in cluster.nodes[1].data_plane.placements.pending_assignments()]
    assert len(held) == 6 and len(set(held)) == 2


def test_cold_reads_come_from_the_disk() -> None:
    cluster = ReplicaCluster(tail_bytes=0)
    cluster.create_topic()
    cluster.wait_led(1)
    for value in "abcdef":
        cluster.produce(1, value)
    assert values_of(bytes(cluster.fetch(1, 2).records)) == ["c", "d", "e", "f"]
    one = cluster.fetch(1, 0, partition_max_bytes=1)
    assert values_of(bytes(one.records)) == ["a"]


def counted_wait(cluster: ReplicaCluster, **limits: int) -> tuple[list[str], float]:
    """The values that a fetch at offset 0 with 10 s of patience got, and how long it waited, in s."""
    node = cluster.nodes[1]

    async def scenario() -> tuple[list[str], float]:
        loop = asyncio.get_running_loop()
        target = FetchTarget(
            TOPIC_ID, FetchPartition(index=0, fetch_offset=0, max_bytes=limits.pop("partition_max_bytes", 1 << 20))
        )
        began_s = loop.time()
        params = FetchParams(max_wait_ms=10_000, **limits)
        responses, _ = await node.fetch_path.fetch(FetchContext((target,), None), params)
        return values_of(bytes(responses[0].records)), loop.time() - began_s

    return node.run(scenario())


@pytest.mark.parametrize("tail_bytes", [0, 1 << 20])
@pytest.mark.parametrize(("min_bytes", "max_bytes"), [(10_000, 200), (190, 200), (10_000, 1)])
def test_a_response_that_is_full_does_not_wait_for_more(tail_bytes: int, min_bytes: int, max_bytes: int) -> None:
    """With the data there it waited for min_bytes that max_bytes did not allow."""
    cluster = ReplicaCluster(tail_bytes=tail_bytes)
    cluster.create_topic()
    cluster.wait_led(1)
    for value in "abcdef":
        cluster.produce(1, value)
    values, waited_s = counted_wait(cluster, min_bytes=min_bytes, max_bytes=max_bytes)
    assert values == (["a", "b"] if max_bytes == 200 else ["a"]) and waited_s < 0.1
    values, waited_s = counted_wait(cluster, min_bytes=10_000, max_bytes=1 << 20)
    assert values == list("abcdef") and waited_s > 9.9


def test_a_consumer_waits_for_the_high_watermark_and_no_longer_than_it_said() -> None:
    cluster = led_cluster()
    node = cluster.nodes[1]

    async def scenario() -> tuple[list[str], float, float]:
        loop = asyncio.get_running_loop()

        async def fetch(offset: int, max_wait_ms: int) -> bytes:
            target = FetchTarget(TOPIC_ID, FetchPartition(index=0, fetch_offset=offset, max_bytes=1000))
            params = FetchParams(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1000)
            responses, _ = await node.fetch_path.fetch(FetchContext((target,), None), params)
            return bytes(responses[0].records)

        waiting = asyncio.ensure_future(fetch(0, 10_000))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await node.produce_path.append(TOPIC_ID, 0, batch("a"), acks=-1, timeout_ms=1000)
        got = await waiting
        first = loop.time()
        assert await fetch(1, 300) == b""
        return values_of(got), first, loop.time() - first

    values, at, waited = node.run(scenario())
    assert values == ["a"] and at < 5 and 0.29 < waited < 0.4


def test_consumers_see_nothing_above_the_high_watermark() -> None:
    cluster = led_cluster()
    cluster.produce(1, "a")
    cluster.kill(2)
    cluster.produce(1, "b", acks=1)
    answer = cluster.fetch(1, 1)
    assert (answer.error_code, len(answer.records), answer.high_watermark) == (0, 0, 1)
    assert cluster.fetch(1, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_of(bytes(cluster.fetch(1, 0).records)) == ["a"]


# --- errors of handlers ---


def test_each_refusal_of_a_fetch() -> None:
    cluster = led_cluster()
    cluster.elect(1, (1, 2, 3))
    cluster.wait_led(1)
    assert cluster.fetch(1, 0, topic=b"?" * 16).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.fetch(1, 0, topic="nobody").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.fetch(1, 0, index=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.fetch(1, 0, current_leader_epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert cluster.fetch(1, 0, current_leader_epoch=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert cluster.fetch(1, 0, current_leader_epoch=1).error_code == ErrorCode.NONE
    elsewhere = cluster.fetch(2, 0)
    assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert elsewhere.current_leader is not None and elsewhere.current_leader.leader_id == 1


@rule("storage 6.6")
def test_a_fetch_of_a_stranger_or_without_the_epoch_is_no_acknowledgement() -> None:
    cluster = led_cluster(replicas=(1, 2), isr=(1, 2))
    cluster.kill(2)
    cluster.produce(1, "a", acks=1)
    stranger = cluster.fetch(1, 1, replica=ReplicaState(replica_id=3, broker_epoch=99), current_leader_epoch=0)
    assert stranger.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    without = cluster.fetch(1, 1, replica=ReplicaState(replica_id=2, broker_epoch=99))
    assert without.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert cluster.core(1).high_watermark == 0


def test_a_fetch_from_where_the_logs_differ_is_no_acknowledgement() -> None:
    """A follower that led before is at offset 3 of its own epoch 0, which ended at 2 here."""
    cluster = led_cluster(replicas=(1, 2), isr=(1, 2))
    cluster.kill(2)
    cluster.produce(1, "a", "b", acks=1)
    cluster.elect(1, (1, 2))
    cluster.wait_led(1)
    cluster.produce(1, "c", acks=1)
    follower = ReplicaState(replica_id=2, broker_epoch=cluster.image.brokers[2].broker_epoch)
    differs = cluster.fetch(1, 3, replica=follower, current_leader_epoch=1, last_fetched_epoch=0)
    assert differs.diverging_epoch == EpochEndOffset(epoch=0, end_offset=2)
    assert cluster.core(1).high_watermark == 0
    agrees = cluster.fetch(1, 2, replica=follower, current_leader_epoch=1, last_fetched_epoch=0)
    assert agrees.diverging_epoch != differs.diverging_epoch and values_of(bytes(agrees.records)) == ["c"]
    assert cluster.core(1).high_watermark == 2


def test_a_fetch_of_no_bytes_gets_one_batch() -> None:
    cluster = led_cluster()
    cluster.produce(1, "a")
    cluster.produce(1, "b")
    node = cluster.nodes[1]
    target = FetchTarget(TOPIC_ID, FetchPartition(index=0, fetch_offset=0, max_bytes=0))

    async def read() -> FetchPartitionResponse:
        return (await node.fetch_path.fetch(FetchContext((target,), None), FetchParams(500, 1, 0)))[0][0]

    assert values_of(bytes(node.run(read()).records)) == ["a"]


@rule("log 4.9")
def test_refusals_of_a_produce() -> None:
    cluster = led_cluster(min_insync_replicas="2")
    assert refused(cluster, 2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused(cluster, 1, acks=7) == ErrorCode.INVALID_REQUIRED_ACKS
    assert refused(cluster, 1, index=5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node = cluster.nodes[1]
    for records, code in [
        (batch("x")[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
        (batch("x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
        (batch("x", timestamp_ms=1_900_000_000_000), ErrorCode.INVALID_TIMESTAMP),
    ]:
        with pytest.raises(ApiError) as caught:
            node.produce_path.append(TOPIC_ID, 0, records, acks=1, timeout_ms=100)
        assert caught.value.code == code
    assert cluster.produce(1, "a") == 0


@rule("storage 1.13", "log 3.14")
def test_a_batch_larger_than_a_segment_is_refused() -> None:
    cluster = led_cluster(segment_bytes="1048576", max_message_bytes="5000000")
    node = cluster.nodes[1]
    with pytest.raises(ApiError) as caught:
        node.produce_path.append(TOPIC_ID, 0, batch("x" * 1_048_576), acks=1, timeout_ms=100)
    assert caught.value.code == ErrorCode.RECORD_LIST_TOO_LARGE and "segment.bytes is 1048576" in str(caught.value)
    assert cluster.produce(1, "x" * 1_048_000) == 0


@rule("storage 1.14", "log 3.14")
def test_no_setting_of_a_topic_takes_its_directory_offline() -> None:
    cluster = led_cluster(internal_segment_bytes="1", index_interval_bytes="0", segment_index_bytes="4")
    for number in range(20):
        assert cluster.produce(1, "x" * 50) == number
    assert cluster.core(1).high_watermark == 20


def test_too_few_in_sync_before_the_append_and_no_answer_in_time() -> None:
    cluster = led_cluster(min_insync_replicas="2")
    cluster.kill(2)
    cluster.kill(3)
    assert refused(cluster, 1, timeout_ms=300) == ErrorCode.REQUEST_TIMED_OUT  # still in the ISR
    cluster.run_for(2 * LAG_MS)
    assert cluster.image.partition(TOPIC_ID, 0).isr == (1,)  # type: ignore[union-attr]
    assert refused(cluster, 1) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.core(1).high_watermark == 0  # held below the minimum
    assert cluster.produce(1, "b", acks=1) == 1


def test_a_waiting_produce_fails_at_once_when_the_leader_changes() -> None:
    cluster = led_cluster()
    cluster.kill(2)
    cluster.kill(3)
    node = cluster.nodes[1]
    before_ns = cluster.scheduler.now_ns

    async def scenario() -> ErrorCode:
        pending = node.produce_path.append(TOPIC_ID, 0, batch("x"), acks=-1, timeout_ms=30_000)
        asyncio.get_running_loop().call_later(0.05, cluster.elect, 2, (2, 3))
        with pytest.raises(ApiError) as caught:
            await pending
        return caught.value.code

    assert node.run(scenario()) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.scheduler.now_ns - before_ns < 1e9


# --- the ISR ---


def test_a_follower_that_falls_behind_leaves_the_isr_and_returns() -> None:
    cluster = led_cluster()
    cluster.kill(3)
    assert refused(cluster, 1, timeout_ms=200) == ErrorCode.REQUEST_TIMED_OUT
    cluster.run_for(2 * LAG_MS)
    assert cluster.image.partition(TOPIC_ID, 0).isr == (1, 2)  # type: ignore[union-attr]
    cluster.produce(1, "b")
    cluster.start(3)
    cluster.run_until(lambda: cluster.image.partition(TOPIC_ID, 0).isr == (1, 2, 3))  # type: ignore[union-attr]
    cluster.produce(1, "c")
    assert cluster.nodes[3].log_values() == ["x", "b", "c"]


def test_a_proposal_is_asked_again_until_it_is_answered() -> None:
    cluster = led_cluster(isr=(1, 2))
    cluster.alter_answer = ErrorCode.NOT_CONTROLLER
    cluster.produce(1, "a")
    cluster.run_for(500)
    assert cluster.alters > 2
    cluster.alter_answer = None
    cluster.run_until(lambda: cluster.image.partition(TOPIC_ID, 0).isr == (1, 2, 3))  # type: ignore[union-attr]


def test_settings_may_change_while_records_come() -> None:
    cluster = led_cluster(durability="replicated")
    cluster.produce(1, "a")
    for value in ("synced", "replicated", "synced"):
        cluster.commit(ConfigRecord(resource_type=2, resource_name="t", name="durability", value=value))
        cluster.produce(1, value)
    assert cluster.core(1).durable and cluster.core(1).synced_end == 4


# --- leaders come and go ---


def test_a_new_leader_goes_on_and_the_old_one_drops_its_unreplicated_records() -> None:
    cluster = led_cluster()
    cluster.produce(1, "a")
    cluster.network.cut_both("n1", "n2")
    cluster.network.cut_both("n1", "n3")
    cluster.produce(1, "lost", acks=1)
    cluster.elect(2, (2, 3))
    cluster.wait_led(2)
    assert cluster.produce(2, "b", "c") == 1
    cluster.network.heal_all()
    cluster.run_until(lambda: cluster.image.partition(TOPIC_ID, 0).isr == (2, 3, 1))  # type: ignore[union-attr]
    assert [cluster.nodes[node].log_values() for node in (1, 2, 3)] == [["a", "b", "c"]] * 3


def test_logs_that_parted_in_several_epochs_agree_in_the_end() -> None:  # AbstractFetcherThread 1, 2
    cluster = led_cluster(replicas=(1, 2), isr=(1, 2), unclean_leader_election_enable="true")
    cluster.produce(1, "common")
    cluster.network.cut_both("n1", "n2")
    for turn in range(3):
        for leader in (1, 2):
            cluster.elect(leader, (leader,))
            cluster.wait_led(leader)
            for number in range(turn + leader):
                cluster.produce(leader, f"{leader}.{turn}.{number}", acks=1)
    cluster.network.heal_all()
    cluster.run_until(lambda: cluster.image.partition(TOPIC_ID, 0).isr == (2, 1))  # type: ignore[union-attr]
    assert cluster.nodes[1].log_values() == cluster.nodes[2].log_values()
    assert cluster.nodes[2].log_values()[0] == "common"


def test_a_stint_of_leadership_without_records_does_not_stop_the_next() -> None:
    cluster = led_cluster(replicas=(1, 2), isr=(1, 2))
    cluster.produce(1, "a")
    cluster.network.cut_both("n1", "n2")
    cluster.elect(2, (2,))
    cluster.wait_led(2)
    cluster.elect(1, (1,))
    cluster.wait_led(1)
    cluster.network.heal_all()
    cluster.produce(1, "b")
    cluster.run_until(lambda: cluster.image.partition(TOPIC_ID, 0).isr == (1, 2))  # type: ignore[union-attr]
    assert cluster.nodes[2].log_values() == ["a", "b"]


def test_a_new_leader_is_followed_at_once() -> None:
    """A fetch that waits at a broker does not delay partitions that the same broker begins to lead."""
    cluster = ReplicaCluster()
    cluster.create_topic((1, 2, 3), partitions=2)
    cluster.wait_led(1, 0)
    cluster.wait_led(1, 1)
    cluster.elect(2, (2, 3, 1), index=0)
    cluster.wait_led(2)
    cluster.run_for(60)  # fetches of partition 0 wait at broker 2 by now
    cluster.elect(2, (2, 3, 1), index=1)
    cluster.wait_led(2, 1)
    before_ns = cluster.scheduler.now_ns
    cluster.produce(2, "a", index=1)
    assert cluster.scheduler.now_ns - before_ns < 100e6


def test_only_the_leaders_log_has_readers_after_every_election() -> None:
    """A follower's writes need not stay in the machine's memory (quorumlog_storage/edge/page_cache.py)."""
    cluster = led_cluster()

    def with_readers() -> list[int]:
        return [number for number, node in cluster.nodes.items() if node.log().has_readers]

    cluster.produce(1, "a")
    assert with_readers() == [1]
    cluster.elect(2, (2, 1, 3))
    cluster.wait_led(2)
    cluster.produce(2, "b")
    assert with_readers() == [2]


# --- processes, power, disks ---


def test_a_clean_stop_and_a_killed_process_come_back_with_all() -> None:
    cluster = led_cluster()
    for value in "abc":
        cluster.produce(1, value)
    assert cluster.nodes[3].run(cluster.nodes[3].data_plane.close()) == frozenset(cluster.nodes[3].paths)
    cluster.kill(3)
    cluster.start(3, clean=True)
    cluster.produce(1, "d")
    cluster.kill(2)
    cluster.start(2)
    cluster.produce(1, "e")
    cluster.run_until(lambda: all(node.log_values() == list("abcde") for node in cluster.nodes.values()))


def test_what_was_acknowledged_survives_the_power_of_all_machines() -> None:
    cluster = led_cluster()
    for value in "abcd":
        cluster.produce(1, value)
    for node in cluster.nodes.values():
        node.cut_power()
    for node_id in cluster.nodes:
        cluster.start(node_id)
    cluster.elect(3, (1, 2, 3))
    cluster.wait_led(3)
    assert cluster.nodes[3].log_values() == list("abcd")
    cluster.produce(3, "e")
    assert values_of(bytes(cluster.fetch(3, 0).records)) == list("abcde")


def test_a_failed_disk_takes_down_its_partitions_only() -> None:
    cluster = ReplicaCluster(directories=2)
    cluster.create_topic(partitions=2)
    cluster.wait_led(1, 0)
    cluster.wait_led(1, 1)
    node = cluster.nodes[1]
    held = {one.index: one.directory_id for one in node.data_plane.placements.pending_assignments()}
    bad, good = 0, 1
    assert held[bad] != held[good]
    fail_writes_of(node, next(path for path in node.paths if node.directory_id(path) == held[bad]))
    assert refused(cluster, 1, index=bad) == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.failed == [held[bad]]
    assert refused(cluster, 1, index=bad) == ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.fetch(1, 0, index=bad).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    cluster.produce(1, "a", index=good)
    (in_order,) = node.run(node.data_plane.close())
    assert node.directory_id(in_order) == held[good]


def test_a_follower_with_a_failed_disk_acknowledges_nothing() -> None:
    cluster = led_cluster()
    cluster.produce(1, "a")
    fail_writes_of(cluster.nodes[2], "/d0")
    assert refused(cluster, 1, timeout_ms=500) == ErrorCode.REQUEST_TIMED_OUT
    assert cluster.core(1).high_watermark == 1


# --- topics go ---


OTHER = bytes([8]) * 16


def make_anew(cluster: ReplicaCluster) -> None:
    """Delete the topic and create another one of the same name."""
    cluster.delete_topic()
    cluster.create_topic(topic_id=OTHER)
    cluster.run_for(500)


def holds_deleted(disk: SimDisk) -> bool:
    return any(name.endswith("-delete") for name in disk.list("/d0"))


def test_a_deleted_topic_frees_its_name_at_once_and_its_space_later() -> None:
    cluster = led_cluster(file_delete_delay_ms="5000")
    cluster.produce(1, "a")
    make_anew(cluster)
    disk = cluster.nodes[1].disk
    names = [name for name in disk.list("/d0") if disk.is_directory(f"/d0/{name}")]
    assert sorted(name.split(".")[0] for name in names) == ["t-0", "t-0"] and holds_deleted(disk)
    assert refused(cluster, 1) == ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.nodes[1].log_values(OTHER) == []
    cluster.run_for(6_000)
    assert not holds_deleted(disk)


def test_a_large_deleted_partition_is_freed_in_steps_that_let_others_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removals, "REMOVAL_STEP_BYTES", 100)
    cluster = led_cluster(file_delete_delay_ms="1000")
    disk = cluster.nodes[1].disk
    cluster.produce(1, "x" * 1000)
    make_anew(cluster)
    seen: list[str] = []
    disk.trace = lambda kind, path, _: seen.append(f"{kind} {'gone' if '-delete' in path else 'kept'}")
    cluster.run_for(500)
    for number in range(5):
        cluster.produce(1, f"v{number}", topic_id=OTHER)
        cluster.run_for(removals.REMOVAL_PAUSE_MS)
    cluster.run_for(2_000)
    assert seen.count("truncate gone") >= 10, "not in steps"
    first, last = seen.index("truncate gone"), len(seen) - 1 - seen[::-1].index("truncate gone")
    assert "sync kept" in seen[first:last], "no other sync ran in between"
    assert not holds_deleted(disk)


def test_what_was_not_removed_at_a_stop_is_removed_after_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removals, "REMOVAL_STEP_BYTES", 100)
    cluster = led_cluster(file_delete_delay_ms="0")
    disk = cluster.nodes[3].disk
    cluster.produce(1, "x" * 5000)
    cluster.delete_topic()
    cluster.run_for(100)
    cluster.kill(3)
    assert holds_deleted(disk)
    cluster.start(3)
    cluster.run_for(3_000)
    assert not holds_deleted(disk)


@rule("kraft 11.10")
def test_a_partition_that_the_metadata_does_not_know_is_set_aside_not_deleted() -> None:
    cluster = led_cluster()
    cluster.produce(1, "a")
    cluster.kill(3)
    cluster.delete_topic()
    cluster.start(3)
    cluster.run_for(500)
    names = cluster.nodes[3].disk.list("/d0")
    assert "t-0" not in names and any(name.endswith("-stray") for name in names)


# --- offsets by time ---


@rule("storage 1.25")
def test_offsets_by_name_and_by_time() -> None:
    cluster = led_cluster()
    node = cluster.nodes[1]

    def ask(timestamp_ms: int, **options: int) -> tuple[int, int, int]:
        answer = node.run(node.data_plane.offset_queries.list_offset(TOPIC_ID, 0, timestamp_ms, **options))
        return answer.error_code, answer.timestamp_ms, answer.offset

    start = 1_700_000_000_000
    for at in (10, 30, 20, 40):
        cluster.produce_batch(1, batch("x", "y", timestamp_ms=start + at))
    assert ask(-2) == (0, -1, 0)
    assert ask(-1) == (0, -1, 8)
    assert ask(start) == (0, start + 10, 0)
    assert ask(start + 11) == (0, start + 30, 2)
    assert ask(start + 31) == (0, start + 40, 6)
    assert ask(start + 41) == (0, -1, -1)
    assert ask(-3) == (0, start + 40, 6)
    assert ask(-1, current_leader_epoch=5)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ask(-4) == ask(-2), "every record is local"
    assert ask(-5) == (0, -1, -1), "and none is anywhere else"
    assert ask(-6) == (0, -1, -1), "nor does one wait to be moved there"
    assert ask(-7)[0] == ask(-9)[0] == ErrorCode.UNSUPPORTED_VERSION, "as Kafka answers to a name that it does not know"
    nowhere = node.run(node.data_plane.offset_queries.list_offset("nope", 0, -7))
    assert nowhere.error_code == ErrorCode.UNSUPPORTED_VERSION, "before it looks for the topic"


def test_the_latest_offset_is_not_available_until_the_high_watermark_is_known() -> None:
    cluster = led_cluster()
    cluster.produce(1, "a")
    cluster.kill(2)
    cluster.start(2)
    cluster.kill(3)
    cluster.kill(1)
    cluster.elect(2, (2, 1, 3))
    cluster.wait_led(2)
    node = cluster.nodes[2]
    answer = node.run(node.data_plane.offset_queries.list_offset(TOPIC_ID, 0, -1))
    assert answer.error_code == ErrorCode.OFFSET_NOT_AVAILABLE


SEEDS = [*range(12), 266]  # 266: a log without records, but with the epoch of a leadership that wrote none


@rule("storage 1.6", "log 1.14", "log 1.17")
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost_by_any_order_of_kills_and_elections(seed: int) -> None:
    """Elections from the ISR only, one machine down at a time; at the end all logs are equal and hold every ack."""
    cluster = ReplicaCluster(seed)
    cluster.create_topic(min_insync_replicas="2")
    cluster.wait_led(1)
    rng = cluster.scheduler.rng("scenario")
    acked: list[str] = []
    down: int | None = None
    for number in range(40):
        registration = cluster.image.partition(TOPIC_ID, 0)
        assert registration is not None
        match rng.choice(["produce", "produce", "produce", "burst", "kill", "start", "wait", "elect"]):
            case "produce":
                acked += _try_produce(cluster, registration.leader, f"v{number}")
            case "burst":
                cluster.nodes[registration.leader].loop.deliver(_burst, cluster, registration.leader, number)
            case "kill" if down is None and len(registration.isr) == 3:
                down = rng.choice([1, 2, 3])
                if rng.random() < 0.5:
                    cluster.nodes[down].cut_power()
                else:
                    cluster.kill(down)
                rest = tuple(node for node in registration.isr if node != down)
                if registration.leader == down:
                    cluster.elect(rng.choice(rest), rest)
            case "start" if down is not None:
                cluster.start(down)
                down = None
            case "wait":
                cluster.run_for(rng.choice([1, 5, 50, 1500]))
            case "elect":
                live = [node for node in registration.isr if node != down]
                cluster.elect(rng.choice(live), registration.isr)
    if down is not None:
        cluster.start(down)
    cluster.run_until(lambda: len(cluster.image.partition(TOPIC_ID, 0).isr) == 3)  # type: ignore[union-attr]
    cluster.run_for(3_000)
    logs = [node.log_values() for node in cluster.nodes.values()]
    assert logs[0] == logs[1] == logs[2]
    position = -1
    for value in acked:
        position = logs[0].index(value, position + 1)


def _try_produce(cluster: ReplicaCluster, node: int, value: str) -> list[str]:
    try:
        cluster.produce(node, value, timeout_ms=1_000)
    except ApiError:
        return []
    return [value]


def _burst(cluster: ReplicaCluster, node: int, number: int) -> None:
    for one in range(5):
        try:
            cluster.nodes[node].produce_path.append(TOPIC_ID, 0, batch(f"b{number}.{one}"), acks=1, timeout_ms=1000)
        except ApiError:
            return
