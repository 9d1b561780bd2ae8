"""Reads the PartitionRecords of a snapshot without an object for each record: nearly all of its records are such.

Equal lists of brokers and directories become one object, as there are few different ones. That saves memory, and the
garbage collector has less to visit.
"""

from __future__ import annotations

from typing import Any

from quorumlog.ids import Uuid
from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.metadata_records import PartitionRecord
from quorumlog.rpc.convert.parsing import parse_with_unknown
from quorumlog.rpc.pb import metadata_records_pb2 as pb
from quorumlog_quorum.metadata.changes import created_partition
from quorumlog_quorum.metadata.frame import FRAME_VERSION, decode_record
from quorumlog_quorum.metadata.registration import UNASSIGNED, PartitionRegistration

PARTITION_HEADER = bytes((FRAME_VERSION, 3, 0))


NewPartition = tuple[Uuid, int, PartitionRegistration]  # topic id, index


class PartitionReader:
    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def read(self, value: bytes) -> NewPartition:
        """value: begins with PARTITION_HEADER. Raises as `decode_record` does."""
        try:
            p, unknown = parse_with_unknown(pb.PartitionRecord, value[len(PARTITION_HEADER) :])
        except DecodeError:
            return _of_record(value)
        if unknown:
            return _of_record(value)
        shared = self._shared
        replicas = shared(p.replicas[:])
        partition = PartitionRegistration(
            replicas=replicas,
            directories=shared(p.directories[:]) or (UNASSIGNED,) * len(replicas),
            isr=shared(p.isr[:]),
            leader=p.leader,
            leader_recovery_state=p.leader_recovery_state,
            leader_epoch=p.leader_epoch,
            partition_epoch=p.partition_epoch,
            eligible_leader_replicas=shared(p.eligible_leader_replicas[:]),
            last_known_elr=shared(p.last_known_elr[:]),
            removing_replicas=shared(p.removing_replicas[:]),
            adding_replicas=shared(p.adding_replicas[:]),
        )
        return p.topic_id, p.partition, partition

    def _shared(self, items: list[Any]) -> tuple[Any, ...]:
        """The one tuple with these items."""
        return self._known.setdefault(found, found) if (found := tuple(items)) else ()


def _of_record(value: bytes) -> NewPartition:
    """The usual way, which finds the right error."""
    record = decode_record(value)
    assert isinstance(record, PartitionRecord)
    return record.topic_id, record.partition, created_partition(record)
