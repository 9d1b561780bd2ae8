"""A read_committed consumer of a compacted topic whose aborted records are still in the memory of the leader."""

from __future__ import annotations

from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import FetchPartition
from quorumlog.records import Record, decode_batch, encode_batch
from quorumlog.records.format.batch import headers, parse_header
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.produce.transactional import EndTransaction, Verified

READ_COMMITTED = 1


def _append(cluster: ReplicaCluster, producer_id: int, sequence: int, value: str, *, commits: bool) -> None:
    """A transaction of one record, and its marker."""
    path = cluster.nodes[1].produce_path
    data = encode_batch(
        [Record(0, 1_700_000_000_000, b"k", value.encode(), ())],
        producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True,
    )  # fmt: skip

    async def both() -> None:
        guard = path.begin_verification(TOPIC_ID, 0, parse_header(data))
        await path.append(TOPIC_ID, 0, data, acks=-1, timeout_ms=5_000, verified=Verified(guard))
        await path.append_end_txn_marker(
            TOPIC_ID, 0, EndTransaction(producer_id, 0, commits, coordinator_epoch=1), timeout_ms=5_000
        )

    cluster.nodes[1].run(both())


def _committed_values(cluster: ReplicaCluster) -> list[str]:
    """What a consumer keeps: nothing of a producer between the start of an aborted transaction and its marker."""
    node, values, offset = cluster.nodes[1], [], 0
    while True:
        target = FetchTarget(TOPIC_ID, FetchPartition(index=0, fetch_offset=offset, max_bytes=1 << 20))
        params = FetchParams(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, isolation_level=READ_COMMITTED)
        ((part,), _) = node.run(node.fetch_path.fetch(FetchContext((target,), None), params))
        data = whole(part.records)
        if not data:
            return values
        waiting = sorted(part.aborted_transactions, key=lambda one: -one.first_offset)
        aborting: set[int] = set()
        for header in headers(data):
            while waiting and waiting[-1].first_offset <= header.base_offset:
                aborting.add(waiting.pop().producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)
            elif header.producer_id not in aborting:
                values += [record.value.decode() for record in decode_batch(data, header) if record.value]
            offset = header.next_offset


def test_an_aborted_record_is_not_served_from_memory_once_compaction_has_taken_it() -> None:
    cluster = ReplicaCluster(cleaner=CleanerConfig(backoff_ms=200))
    settings = {"cleanup_policy": "compact", "internal_segment_bytes": "400", "min_cleanable_dirty_ratio": "0.01"}
    cluster.create_topic(**settings, delete_retention_ms="0")
    cluster.wait_led(1)
    for number in range(6):
        _append(cluster, 41, number, f"aborted {number}", commits=False)
        _append(cluster, 42, number, f"committed {number}", commits=True)
    assert [value.split()[0] for value in _committed_values(cluster)] == ["committed"] * 6
    for _ in range(4):  # the first round takes the records, a later one their markers and entries
        cluster.run_for(3_000)
        _append(cluster, 43, _, f"committed later {_}", commits=True)
        assert all(value.startswith("committed") for value in _committed_values(cluster))
    assert cluster.nodes[1].data_plane.cleaner.totals.rounds > 2
