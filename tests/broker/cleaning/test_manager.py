"""The cleaner of three brokers on simulated machines: what it does to each replica, and what stops it."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog.configs.cleaner import PAUSED_UNTIL
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from quorumlog_storage.directory.offset_files import CLEANER_OFFSETS, parse_offsets
from quorumlog_storage.log.log import Log
from tests.rules import rule

KEY: PartitionKey = (TOPIC_ID, 0)
SETTINGS = {"cleanup_policy": "compact", "internal_segment_bytes": "400", "min_cleanable_dirty_ratio": "0.01"}


def keyed(*pairs: tuple[str, str | None]) -> bytes:
    records = [
        Record(n, 1_700_000_000_000, key.encode(), None if value is None else value.encode(), ())
        for n, (key, value) in enumerate(pairs)
    ]
    return encode_batch(records)


def compacted(
    backoff_ms: int = 200,
    tail_bytes: int = 1 << 20,
    threads: int = 1,
    bytes_per_s: float = CleanerConfig().bytes_per_s,
    **settings: str,
) -> ReplicaCluster:
    cleaner = CleanerConfig(backoff_ms=backoff_ms, threads=threads, bytes_per_s=bytes_per_s)
    cluster = ReplicaCluster(tail_bytes=tail_bytes, cleaner=cleaner)
    cluster.create_topic(**{**SETTINGS, **settings})
    cluster.wait_led(1)
    return cluster


def fill(cluster: ReplicaCluster, count: int = 40, first: int = 0) -> None:
    for number in range(first, first + count):
        cluster.produce_batch(1, keyed((f"k{number % 4}", f"v{number}"), ("same", f"w{number}")))


def records(log: Log) -> list[tuple[Offset, str, str | None]]:
    found, offset = [], log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 10_000, upper_bound=log.end_offset)
        assert data, f"a hole at {offset}"
        for header in headers(data):
            for record in decode_batch(data, header):
                assert record.key is not None
                value = None if record.value is None else record.value.decode()
                found.append((record.offset, record.key.decode(), value))
            offset = header.next_offset
    return found


def last_values(node: Node) -> dict[str, str | None]:
    return {key: value for _, key, value in records(node.log())}


def noted(node: Node) -> Offset:
    content = node.disk.read_bytes(f"/d0/{CLEANER_OFFSETS}")
    return parse_offsets(CLEANER_OFFSETS, content)["t", 0]


@rule("storage 9.2")
def test_every_replica_compacts_its_own_log_and_notes_how_far() -> None:
    cluster = compacted()
    fill(cluster)
    before = last_values(cluster.nodes[1])
    cluster.run_for(10_000)
    for node in cluster.nodes.values():
        log = node.log()
        found = records(log)
        assert last_values(node) == before and log.end_offset == 80
        clean = [one for one in found if one[0] < log.segment_bases[-1]]
        assert len(clean) <= len(before) and found == sorted(found)
        assert noted(node) == log.segment_bases[-1] == node.replicas[KEY].partition_log.first_dirty  # type: ignore[union-attr]
        assert node.data_plane.cleaner.totals.bytes_freed > 0
    fill(cluster, first=40)
    cluster.run_for(10_000)
    assert {tuple(sorted(last_values(node).items())) for node in cluster.nodes.values()} == {
        tuple(sorted(last_values(cluster.nodes[1]).items()))
    }


def test_the_last_look_tells_how_dirty_the_dirtiest_log_was() -> None:
    cluster = compacted(min_cleanable_dirty_ratio="1.0")
    cleaner = cluster.nodes[1].data_plane.cleaner
    fill(cluster)
    cluster.run_for(2_000)
    before = cleaner.looked
    assert cleaner.totals.rounds == 1 and before.at_ms is not None and before.largest_ratio == 0
    fill(cluster, first=40)
    cluster.run_for(2_000)
    assert cleaner.totals.rounds == 1, "a part of it is clean"
    assert 0.5 < cleaner.looked.largest_ratio < 1 and cleaner.looked.at_ms is not None
    assert cleaner.looked.at_ms > before.at_ms and cleaner.looked.longest_overdue_ms == 0


@rule("storage 9.2")
def test_a_restarted_broker_goes_on_where_it_was() -> None:
    cluster = compacted()
    fill(cluster)
    cluster.run_for(10_000)
    wanted, first_dirty = records(cluster.nodes[2].log()), noted(cluster.nodes[2])
    cluster.kill(2)
    node = cluster.start(2)
    cluster.run_until(lambda: KEY in node.replicas and node.replicas[KEY].log is not None)
    assert records(node.log()) == wanted
    assert node.replicas[KEY].partition_log.first_dirty == first_dirty  # type: ignore[union-attr]
    cluster.run_for(2_000)
    assert node.data_plane.cleaner.totals.rounds == 0


def test_a_new_replica_copies_what_is_left_with_its_gaps() -> None:
    cluster = compacted(tail_bytes=0)  # so that it reads the leader's files, not what the leader has in memory
    cluster.kill(3)
    cluster.elect(1, (1, 2))
    cluster.wait_led(1)
    fill(cluster)
    cluster.run_for(10_000)
    cluster.start(3)
    cluster.run_until(
        lambda: (
            KEY in cluster.nodes[3].replicas
            and cluster.nodes[3].replicas[KEY].log is not None
            and cluster.nodes[3].log().end_offset == 80
        )
    )
    assert records(cluster.nodes[3].log()) == records(cluster.nodes[1].log())
    for segment, successor in zip(
        cluster.nodes[3].log().view.segments, cluster.nodes[3].log().segment_bases[1:], strict=False
    ):
        assert segment.end_offset() == successor


def test_a_topic_that_is_not_compacted_is_left_alone() -> None:
    cluster = compacted(cleanup_policy="delete")
    fill(cluster)
    cluster.run_for(10_000)
    assert len(records(cluster.nodes[1].log())) == 80


def test_a_topic_whose_retention_is_paused_keeps_every_record_until_it_goes_on() -> None:
    """As an import leaves it."""
    cluster = compacted(retention_paused="true")
    fill(cluster)
    cluster.run_for(10_000)
    assert len(records(cluster.nodes[1].log())) == 80
    record = ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="retention.paused", value="false")
    cluster.commit(record)
    cluster.run_for(10_000)
    assert len(records(cluster.nodes[1].log())) < 20


def test_a_restored_cluster_compacts_nothing_until_the_hold_is_released() -> None:
    """Neither older values go nor tombstones."""
    cluster = compacted(delete_retention_ms="0")
    commit_for_all(cluster, "retention.paused", "true")
    cluster.produce_batch(1, keyed(("gone", None)))
    fill(cluster)
    cluster.run_for(10_000)
    assert len(records(cluster.nodes[1].log())) == 81
    commit_for_all(cluster, "retention.paused", None)
    cluster.run_for(10_000)
    fill(cluster, first=40)  # tombstones go in the second round that meets them
    cluster.run_for(10_000)
    found = records(cluster.nodes[1].log())
    assert len(found) < 20 and "gone" not in [key for _, key, _ in found]


def test_no_round_begins_while_a_backup_copies_and_rounds_go_on_by_themselves() -> None:
    cluster = compacted()
    until_ms = cluster.nodes[1].clock.wall_ms() + 12_000
    commit_for_all(cluster, PAUSED_UNTIL, str(until_ms))
    fill(cluster)
    cluster.run_for(10_000)
    assert [len(records(node.log())) for node in cluster.nodes.values()] == [80, 80, 80]
    assert cluster.nodes[1].data_plane.cleaner.looked.largest_ratio > 0, "it still tells what waits"
    cluster.run_for(10_000)
    assert all(len(records(node.log())) < 20 for node in cluster.nodes.values())


def commit_for_all(cluster: ReplicaCluster, name: str, value: str | None) -> None:
    """A setting of all brokers."""
    cluster.commit(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER_DEFAULT, name=name, value=value))


@rule("storage 9.17")
def test_a_change_of_the_policy_takes_effect_in_both_directions() -> None:
    cluster = compacted(cleanup_policy="delete")
    fill(cluster)

    def policy(value: str) -> None:
        record = ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="cleanup.policy", value=value)
        cluster.commit(record)
        cluster.run_for(10_000)

    policy("compact,delete")
    left = records(cluster.nodes[1].log())
    assert len(left) < 20
    policy("delete")
    fill(cluster, first=40)
    cluster.run_for(10_000)
    assert len(records(cluster.nodes[1].log())) == len(left) + 80


def test_a_record_without_a_key_is_refused() -> None:
    cluster = compacted()
    with pytest.raises(ApiError) as refused:
        cluster.produce_batch(1, encode_batch([Record(0, 0, None, b"v", ())]))
    assert refused.value.code is ErrorCode.INVALID_RECORD
    cluster = compacted(cleanup_policy="compact,delete")
    with pytest.raises(ApiError):
        cluster.produce_batch(1, encode_batch([Record(0, 0, None, b"v", ())]))


def test_a_paused_log_is_not_compacted_until_it_is_resumed() -> None:
    cluster = compacted()
    states = cluster.nodes[1].data_plane.cleaner.states
    states.pause(KEY)
    fill(cluster)
    cluster.run_for(10_000)
    assert len(records(cluster.nodes[1].log())) == 80 and states.describe(KEY) == "paused (1)"
    states.resume(KEY)
    cluster.run_for(10_000)
    assert len(records(cluster.nodes[1].log())) < 20


@rule("storage 9.14")
def test_a_damaged_log_says_why_and_is_tried_again_until_it_is_mended() -> None:
    cluster = compacted(backoff_ms=100)
    node = cluster.nodes[2]
    node.data_plane.cleaner.states.pause(KEY)
    fill(cluster)
    path = node.log().view.segments[1].log.path
    good = node.disk.open(path).pread(30, 1)
    node.disk.open(path).pwritev([b"\xff"], 30)
    node.data_plane.cleaner.states.resume(KEY)
    cluster.run_for(5_000)
    failure = node.data_plane.cleaner.failures.by_key[KEY]
    assert path in failure.reason and "checksum" in failure.reason and failure.times == 1
    assert not node.failed and not node.replicas[KEY].core.failed
    node.disk.open(path).pwritev([good], 30)
    cluster.run_for(20_000)
    assert not node.data_plane.cleaner.failures.by_key and len(records(node.log())) < 20
    assert len(records(cluster.nodes[1].log())) < 20, "other replicas did not wait"


@rule("storage 9.15")
def test_an_error_of_the_disk_has_the_consequence_that_it_has_everywhere() -> None:
    cluster = compacted()
    node = cluster.nodes[2]

    def fails(operation: Operation) -> Fault | None:
        return Fail() if operation.kind == "pwritev" and operation.path.endswith(".cleaned") else None

    node.disk.faults = fails
    fill(cluster)
    cluster.run_for(10_000)
    assert node.failed == [node.directory_id("/d0")]
    assert len(records(cluster.nodes[1].log())) < 20, "other brokers did not notice"


@rule("storage 9.13", "log 7.20")
def test_a_log_that_is_truncated_meanwhile_keeps_what_it_has_then() -> None:
    """Every broker is killed at some time of a round, and another one leads."""
    for delay_ms in range(0, 60, 7):
        cluster = compacted(backoff_ms=10)
        fill(cluster)
        before = last_values(cluster.nodes[1])
        cluster.run_for(delay_ms)
        cluster.kill(1)
        cluster.elect(2, (2, 3))
        cluster.wait_led(2)
        cluster.start(1)
        cluster.run_for(15_000)
        for node in cluster.nodes.values():
            assert last_values(node) == before and node.log().end_offset == 80


@rule("storage 9.13", "log 7.20")
def test_a_deleted_topic_ends_its_round() -> None:
    cluster = compacted(backoff_ms=10)
    fill(cluster)
    cluster.delete_topic()
    cluster.run_for(5_000)
    for node in cluster.nodes.values():
        assert not node.data_plane.cleaner.last and not node.crashes
        path = f"/d0/{CLEANER_OFFSETS}"
        noted_lines = parse_offsets(path, node.disk.read_bytes(path)) if node.disk.exists(path) else {}
        assert ("t", 0) not in noted_lines
