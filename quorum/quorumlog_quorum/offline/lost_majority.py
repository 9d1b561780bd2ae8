"""Recovery of a quorum that has lost its majority for ever, on the metadata log of one stopped survivor.

What this log holds becomes the truth, committed or not; what only the lost voters held is gone. The tool acts as the
leader of one epoch, later than all that this node has seen. In it, it writes

    LeaderChange                       the survivor, elected by the operator
    KRaftVersion 1, Voters             the survivor alone; so a static voter set becomes one that can be changed
    AbortTransactionRecord             where the log ends inside a transaction: what follows would be part of it
    ClusterIncarnationRecord           from metadata.version 3 on
    ProducerIdsRecord                  skips the ids that lost controllers may have given out

Then no old promise matters: nodes of the earlier incarnation are refused, so `quorum-state` begins anew.

A file beside `meta.properties`, `cluster-recovery`, is the point of no return. It is written first and says what will
be done; while it is there the node does not start. Each step after it can be repeated, and a repeated command finishes
what an interrupted one began, with the same incarnation. The caller removes the file last.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from quorumlog.cluster_incarnation import ClusterIncarnation, parse_incarnation
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    ClusterIncarnationRecord,
    MetadataRecord,
    ProducerIdsRecord,
)
from quorumlog.records.control import ControlRecord, KRaftVersion, LeaderChange, Voter, Voters, control_batch
from quorumlog.records.rowwise.values import encode_values
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.metadata.features import INCARNATION_LEVEL
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.offline.metadata_survey import MetadataSurvey
from quorumlog_quorum.raft.quorum_state import (
    QUORUM_STATE_NAME,
    CorruptQuorumState,
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, OffsetFile
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.segment.batch import received_batches

INTENT_NAME = "cluster-recovery"
MAX_INTENT_BYTES = 2048  # some 150 are usual
# More than any cluster gives out between the last record of a survivor and that of the lost majority. A producer id
# that is given out twice makes a broker take a new record for a repetition.
SKIPPED_PRODUCER_IDS = 1 << 40


class RecoveryRefused(Exception):
    """Nothing was changed. The message is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a recovery does. end_offset: exclusive end of the records that are kept. epoch: in which it writes."""

    incarnation: ClusterIncarnation
    end_offset: Offset
    last_epoch: Epoch
    epoch: Epoch

    def render(self) -> bytes:
        fields = {
            "version": 1,
            "incarnation": str(self.incarnation),
            "endOffset": self.end_offset,
            "lastEpoch": self.last_epoch,
            "epoch": self.epoch,
        }
        return (json.dumps(fields, separators=(",", ":")) + "\n").encode()


def read_intent(disk: Disk, directory: str) -> Intent | None:
    """directory: the log directory that holds the metadata log. None: no recovery is under way.

    Raises RecoveryRefused, DiskError.
    """
    path = f"{directory}/{INTENT_NAME}"
    try:
        content = disk.read_bytes(path)
    except FileMissing:
        return None
    try:
        if len(content) > MAX_INTENT_BYTES:
            raise ValueError(f"{len(content)} bytes, at most {MAX_INTENT_BYTES} are expected")
        fields = json.loads(content)
        assert fields["version"] == 1
        return Intent(
            incarnation=parse_incarnation(fields["incarnation"]),
            end_offset=_number(fields, "endOffset"),
            last_epoch=_number(fields, "lastEpoch"),
            epoch=_number(fields, "epoch"),
        )
    except (ValueError, KeyError, TypeError, AssertionError, AttributeError, RecursionError) as error:
        raise RecoveryRefused(f"{path} is not what a recovery writes ({error!r}); restore or remove it") from error


def _number(fields: dict[str, object], name: str) -> int:
    """Raises KeyError, ValueError: a fraction or a text is no offset."""
    value = fields[name]
    if type(value) is not int or not -1 <= value < 2**63:
        raise ValueError(f"{name} is {value!r}")
    return value


def write_intent(disk: Disk, directory: str, intent: Intent) -> None:
    """From here on the cluster is in its new incarnation. Durable when it returns."""
    write_atomically(disk, f"{directory}/{INTENT_NAME}", intent.render())


def new_epoch(disk: Disk, path: str, found: MetadataSurvey) -> Epoch:
    """Later than every epoch that this node knows. path: of the metadata log."""
    try:
        known = read_quorum_state(disk, f"{path}/{QUORUM_STATE_NAME}").epoch
    except CorruptQuorumState:
        known = 0  # its votes were given in the earlier incarnation
    return max(known, found.last_epoch, 0) + 1


def write_recovery(
    disk: Disk, log: CheckpointedLog, intent: Intent, kept: MetadataSurvey, survivor: Voter, timestamp_ms: int
) -> None:
    """Make the log and the quorum's files those of the new incarnation. It may be repeated.

    log: open. kept: of the records that stay. Durable when it returns, and the log is closed.
    """
    assert kept.reach == (intent.last_epoch, intent.end_offset), f"{kept.reach} is there, {intent} was meant"
    if log.log.last_epoch < intent.last_epoch or log.log.end_offset < intent.end_offset:
        assert kept.snapshot is not None and kept.snapshot.offset == intent.end_offset
        log.truncate_fully(intent.end_offset)  # the snapshot reaches further than the log
    elif log.log.end_offset > intent.end_offset:
        log.truncate_to(intent.end_offset)  # an interrupted attempt
    assert log.log.end_offset == intent.end_offset, f"{log.log.end_offset}, {intent} was meant"
    log.log.append(received_batches(_batches(intent, kept, survivor, timestamp_ms)))
    log.log.sync()
    log.close()
    path = log.log.path
    OffsetFile(disk, f"{path}/{LOST_OFFSETS}").update({METADATA_PARTITION: None})
    write_quorum_state(disk, f"{path}/{QUORUM_STATE_NAME}", QuorumState(epoch=intent.epoch))


def _batches(intent: Intent, kept: MetadataSurvey, survivor: Voter, timestamp_ms: int) -> bytes:
    image, end, epoch = kept.image, intent.end_offset, intent.epoch
    elected = LeaderChange(survivor.id, (survivor.id,), (survivor.id,))
    controls: list[list[ControlRecord]] = [[elected], [KRaftVersion(1), Voters((survivor,))]]
    out = bytearray()
    for records in controls:
        out += control_batch(records, base_offset=end, timestamp_ms=timestamp_ms, leader_epoch=epoch)
        end += len(records)
    changes = [_records(intent.incarnation, image)]
    if kept.in_transaction:  # it ends its batch; the next active controller would abort all that came before it
        changes.insert(0, [AbortTransactionRecord(reason="the majority that began it is lost")])
    for group in changes:
        out += encode_values([encode_record(one, image.metadata_version) for one in group], end, epoch, timestamp_ms)
        end += len(group)
    return bytes(out)


def _records(incarnation: ClusterIncarnation, image: Image) -> list[MetadataRecord]:
    next_producer_id = image.next_producer_id + SKIPPED_PRODUCER_IDS
    records: list[MetadataRecord] = [
        ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=next_producer_id)
    ]
    if image.metadata_version >= INCARNATION_LEVEL:
        records.insert(0, ClusterIncarnationRecord(number=incarnation.number, id=incarnation.id))
    return records
