"""The logs of transactions when everything has ended, read from the disks.

jepsen.checkers.transactional.logs and jepsen.checkers.joint.logs judge them.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.checkers.joint.events import ChildRecord, DecisionRecord
from jepsen.checkers.joint.logs import LogRecord
from jepsen.checkers.transactional.logs import DataBatch, IdRecord, Partition, check_logs
from jepsen.joint.recorder import JOINT
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import BROKERS
from jepsen.sim.truth.mirrors import Mirrors, log_id
from jepsen.transactions.readers import LEDGER
from quorumlog.records import iter_batch, iter_headers
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.joint import JointChild, JointKey, unpack
from quorumlog.records.coordinator.transactions import TransactionKey, TransactionValue
from quorumlog.topic_name import CONSUMER_OFFSETS, TRANSACTION_STATE
from quorumlog_quorum.metadata.image import Image


class TransactionLogs(Invariant):
    """counts: what was looked at."""

    def __init__(self, mirrors: Mirrors, findings: Findings) -> None:
        self._mirrors, self._findings = mirrors, findings
        self.counts: dict[str, int] = {}

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        """All replicas are equal, and nothing is under way any more."""
        any_broker = machines[next(iter(BROKERS))]
        ids = [_id_records(one) for one in logs_of(self._mirrors, TRANSACTION_STATE, image, any_broker).values()]
        data = {
            partition: batches_of(content)
            for topic in (LEDGER, JOINT, CONSUMER_OFFSETS)
            for partition, content in logs_of(self._mirrors, topic, image, any_broker).items()
        }
        found, self.counts = check_logs(ids, data)
        for finding in found:
            self._findings.broken(finding.name, finding.text)

    def joint(self, image: Image, machines: dict[str, Machine]) -> list[list[LogRecord]]:
        """Of joint transactions, at the end, by partition of the topic."""
        any_broker = machines[next(iter(BROKERS))]
        logs = logs_of(self._mirrors, TRANSACTION_STATE, image, any_broker)
        return [_joint_records(logs[key]) for key in sorted(logs)]


def logs_of(mirrors: Mirrors, name: str, image: Image, machine: Machine) -> dict[Partition, bytes]:
    """Each partition of a topic whose records were never let go."""
    topic = image.topic(name)
    found: dict[Partition, bytes] = {}
    for index in topic.partitions if topic is not None else ():
        assert topic is not None
        mirror = mirrors.of(machine, log_id(f"{name}-{index}", topic.id))
        content = mirror.content(mirror.base, mirror.end) if mirror.end > mirror.base else b""
        assert content is not None and mirror.base == 0, f"{name}-{index} does not begin at 0"
        found[name, index] = content
    return found


def _id_records(data: bytes) -> list[IdRecord]:
    found = []
    for header in iter_headers(data):
        for record in iter_batch(data, header):
            key, value = decode(TRANSACTION_TYPES, record.key or b"", record.value)[1::2]
            if isinstance(key, TransactionKey) and value is not None:
                partitions = frozenset(
                    (topic.topic, index)
                    for topic in value.transaction_partitions or ()
                    for index in topic.partition_ids
                )
                status = int(value.transaction_status)
                is_child = value.joint is not None
                one = IdRecord(
                    key.transactional_id, value.producer_id, value.producer_epoch, status, partitions, is_child
                )
                found.append(one)
    return found


def _joint_records(data: bytes) -> list[LogRecord]:
    found: list[LogRecord] = []
    for header in iter_headers(data):
        for record in iter_batch(data, header):
            key, value = decode(TRANSACTION_TYPES, record.key or b"", record.value)[1::2]
            if isinstance(key, JointKey) and value is not None:
                facts = {fact.name: fact.value for fact in value.facts}
                children = dict(unpack(value.children))
                found.append(
                    DecisionRecord(key.group, value.kind, value.location, value.run, value.sequence, facts, children)
                )
            elif isinstance(key, TransactionKey) and value is not None and value.joint is not None:
                found.append(_child_record(key.transactional_id, value, value.joint))
    return found


def _child_record(transactional_id: str, value: TransactionValue, child: JointChild) -> ChildRecord:
    return ChildRecord(
        transactional_id=transactional_id,
        group=child.group,
        slot=child.slot,
        token=child.token.decode(),
        run=child.run,
        sequence=child.sequence,
        location=child.location,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        status=int(value.transaction_status),
        cause=int(child.cause),
    )


def batches_of(data: bytes) -> list[DataBatch]:
    """The transactional ones of a partition with data."""
    found = []
    for header in iter_headers(data):
        if not header.is_transactional:
            continue
        commits = None
        if header.is_control:
            (record,) = iter_batch(data, header)
            marker = decode_control(record.key, record.value)
            assert isinstance(marker, EndTxnMarker)
            commits = marker.committed
        found.append(DataBatch(header.base_offset, header.producer_id, header.producer_epoch, commits))
    return found
