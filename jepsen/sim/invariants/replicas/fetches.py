"""What a fetch answer holds, checked when the broker answers.

- fetch-below-high-watermark: a consumer gets no record at or above the high watermark of its answer.
- told-high-watermark: no answer tells a high watermark that this process never had.
- fetch-equals-log: the records are whole batches with the bytes of the log on the same machine. A follower may get
  batches that its leader has cut since: its answer waits for other partitions. So of its batches, only those are
  compared whose offset and epoch the log still has. Records below the log's start may be deleted already.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.invariants.replicas.offsets import OffsetInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import COMPACTED_TOPIC
from jepsen.sim.truth.log_mirror import LogMirror
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog.errors import ErrorCode
from quorumlog.messages.buffer import Buffer, whole
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import BatchHeader, headers
from quorumlog_broker.replicas.replica import Replica


class FetchInvariants(Invariant):
    """batches: how many were compared with the log."""

    def __init__(self, offsets: OffsetInvariants, mirrors: Mirrors, findings: Findings) -> None:
        self._offsets, self._mirrors, self._findings = offsets, mirrors, findings
        self.batches = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"fetched batches compared": self.batches}

    def on_fetched(self, machine: Machine, request: FetchRequest, response: FetchResponse) -> None:
        plane = data_plane_of(machine)
        if plane is None:
            return
        for topic in response.topics:
            topic_id = topic.topic_id or plane.registry.image.topic_ids.get(topic.name, b"")
            for answer in topic.partitions:
                replica = plane.registry.replicas.get((topic_id, answer.index))
                if replica is None or replica.topic == COMPACTED_TOPIC:
                    continue
                if answer.error_code == ErrorCode.NONE:
                    self._on_answer(machine, replica, answer, is_consumer=request.replica is None)

    def _on_answer(
        self, machine: Machine, replica: Replica, answer: FetchPartitionResponse, *, is_consumer: bool
    ) -> None:
        what = f"{machine.host}, life {machine.life}, answers a fetch of {replica.name}"
        reached = self._offsets.reached(machine, replica)
        if answer.high_watermark > reached:
            told = f"with a high watermark of {answer.high_watermark}"
            self._findings.broken("told-high-watermark", f"{what} {told}; it never had more than {reached}")
        if not answer.records:
            return
        records = whole(answer.records)
        try:
            found = headers(records)
        except CorruptRecords as error:
            self._findings.broken("fetch-equals-log", f"{what} with bytes that are not whole batches: {error}")
            return
        if is_consumer and found[-1].next_offset > answer.high_watermark:
            given = f"up to {found[-1].next_offset}, above the high watermark {answer.high_watermark}"
            self._findings.broken("fetch-below-high-watermark", f"{what} for a consumer {given}")
        mirror = self._mirrors.of_replica(machine, replica)
        for header in found:
            if not self._agrees(mirror, replica, records, header, is_consumer=is_consumer):
                batch = f"the batch [{header.base_offset}, {header.next_offset}) of epoch {header.leader_epoch}"
                self._findings.broken("fetch-equals-log", f"{what} with {batch}, which its log does not hold")
                return

    def _agrees(
        self, mirror: LogMirror, replica: Replica, records: Buffer, header: BatchHeader, *, is_consumer: bool
    ) -> bool:
        held = mirror.batch_before(header.next_offset)
        if held is None or (held.base, held.end, held.epoch) != (
            header.base_offset,
            header.next_offset,
            header.leader_epoch,
        ):
            is_deleted = replica.log is None or header.next_offset <= replica.log.start_offset
            return is_deleted or not is_consumer
        self.batches += 1
        return mirror.content(held.base, held.end) == records[header.position : header.end]
