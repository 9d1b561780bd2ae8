"""Batches of transactions on simulated machines, with the guards that a coordinator would ask for."""

from __future__ import annotations

from typing import Any

from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from quorumlog.records import Record, encode_batch
from quorumlog.records.format.batch import parse_header
from quorumlog_broker.produce.transactional import Verified
from quorumlog_storage.producers.verification import Guard


def in_transaction(producer_id: int, sequence: int, *values: str, epoch: int = 0) -> bytes:
    records = [Record(n, 1_700_000_000_000, None, value.encode(), ()) for n, value in enumerate(values)]
    return encode_batch(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True
    )


def guard_for(node: Node, records: bytes, **options: Any) -> Guard | None:
    return node.produce_path.begin_verification(TOPIC_ID, 0, parse_header(records), **options)


def write(cluster: ReplicaCluster, records: bytes, guard: Guard | None, node: int = 1) -> int:
    async def append() -> int:
        path = cluster.nodes[node].produce_path
        result = await path.append(TOPIC_ID, 0, records, acks=-1, timeout_ms=5_000, verified=Verified(guard))
        return result.base_offset

    return cluster.nodes[node].run(append())


def verified(cluster: ReplicaCluster, records: bytes, node: int = 1) -> int:
    return write(cluster, records, guard_for(cluster.nodes[node], records), node)
