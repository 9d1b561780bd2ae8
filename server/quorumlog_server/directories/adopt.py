"""`quorumlog storage adopt`: a stopped broker of the earlier cluster incarnation brings its records into the new one.

Partition data depends on metadata: a leader epoch that the recovered controller gives out a second time, for other
records, would make two logs differ without anybody noticing; and a replica that was deleted and is believed to be in
sync would count as one that holds everything. Both can only happen to a broker that knew more than the recovered log
holds. So a directory is adopted only if its own copy of the metadata log has no change of a partition beyond the
recovered records. A change counts there where it takes effect: the recovery aborts a transaction in which its log ends,
and for a broker that knew the end of it all its records hold. Nor may `durability` have changed: the controller would
trust a disk after an unclean end under which records were acknowledged from the page cache. The broker's copy is
complete in that respect: it acts on no metadata that is not in it. Where a snapshot, or damage, stands for records
beyond, nobody can say which changes they were: such a directory is refused.

Nothing is deleted. The old copy of the metadata log is set aside under the name of a stray log, because it may hold
records that differ from the recovered ones, and the node fetches all metadata anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.ids import Epoch, Offset, Uuid
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog_quorum.offline.lost_majority import INTENT_NAME, RecoveryRefused
from quorumlog_quorum.offline.metadata_survey import records_beyond, unseen_beyond
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.recover import locked_directories, write_meta
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import STRAY, marked_directory

_WHAT_TO_DO = (
    "Its logs may differ from those that will be written under the same epochs. Move its directories away, format it "
    "as a new node, and let it copy its replicas from the others; or recover on a controller that holds these changes"
)
_OF_PARTITIONS = (PartitionRecord, PartitionChangeRecord, RemoveTopicRecord)
_DURABILITY = "durability"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """set_aside: the old copy of the metadata log; "" if there was none. directories: those that were changed now."""

    directories: tuple[str, ...]
    set_aside: str


def adopt(
    disk: Disk,
    config: NodeConfig,
    *,
    incarnation: ClusterIncarnation,
    end_offset: Offset,
    last_epoch: Epoch,
    new_uuid: Callable[[], Uuid],
) -> Adopted:
    """end_offset, last_epoch: of the records that the recovery has kept, as `storage recover` printed them.

    It may be repeated after an interruption. Raises RecoveryRefused, NotFormatted, WrongDirectory, DirectoryLocked;
    then nothing was changed. Raises DiskError.
    """
    with locked_directories(disk, config) as metas:
        waiting = {path: meta for path, meta in metas.items() if meta.incarnation != incarnation}
        for path, meta in waiting.items():
            if meta.incarnation.number >= incarnation.number:
                raise RecoveryRefused(
                    f"{path} is of cluster incarnation {meta.incarnation}, not of one before {incarnation}"
                )
        if disk.exists(f"{config.metadata_log_dir}/{INTENT_NAME}"):
            raise RecoveryRefused(
                f"a recovery of node {config.node_id} was interrupted: finish it, or format this node anew"
            )
        set_aside = ""
        if config.metadata_log_dir in waiting:
            _check(disk, config, end_offset, last_epoch)
            set_aside = _set_metadata_aside(disk, config.metadata_log_dir, new_uuid())
        # The metadata directory is the last: as long as it waits, a repeated command does all of this again.
        for path in sorted(waiting, key=lambda path: path == config.metadata_log_dir):
            write_meta(disk, path, waiting[path], incarnation)
        return Adopted(directories=tuple(waiting), set_aside=set_aside)


def _check(disk: Disk, config: NodeConfig, end_offset: Offset, last_epoch: Epoch) -> None:
    path = f"{config.metadata_log_dir}/{METADATA_DIRECTORY}"
    beyond = list(records_beyond(disk, path, end_offset, last_epoch))
    changes = [record for record in beyond if isinstance(record, _OF_PARTITIONS)]
    if _ends_earlier_transaction(beyond):
        raise RecoveryRefused(
            f"node {config.node_id} knows the end of a transaction of the metadata that the recovered cluster has "
            f"aborted, so its changes held here and are lost there. {_WHAT_TO_DO}"
        )
    if changes:
        raise RecoveryRefused(
            f"node {config.node_id} knows {len(changes)} changes of partitions that the recovered cluster has lost, "
            f"the first of them: {changes[0]}. {_WHAT_TO_DO}"
        )
    if any(isinstance(record, ConfigRecord) and record.name == _DURABILITY for record in beyond):
        raise RecoveryRefused(
            f"node {config.node_id} knows a change of {_DURABILITY} that the recovered cluster has lost, and may have "
            f"acknowledged records from its page cache that a power cut has taken. {_WHAT_TO_DO}"
        )
    unseen = unseen_beyond(disk, path, end_offset, last_epoch)
    if unseen:
        raise RecoveryRefused(
            f"node {config.node_id} knows more than the recovered cluster, which ends at offset {end_offset} of epoch "
            f"{last_epoch}: it has {unseen}, and its log does not show which changes of partitions these were. "
            f"{_WHAT_TO_DO}"
        )


def _ends_earlier_transaction(beyond: Iterable[MetadataRecord]) -> bool:
    """Whether a transaction that began before these records is committed by one of them."""
    for record in beyond:
        if isinstance(record, EndTransactionRecord):
            return True
        if isinstance(record, BeginTransactionRecord | AbortTransactionRecord):
            return False
    return False


def _set_metadata_aside(disk: Disk, directory: str, unique: Uuid) -> str:
    path = f"{directory}/{METADATA_DIRECTORY}"
    if not disk.is_directory(path):
        return ""
    aside = f"{directory}/{marked_directory(*METADATA_PARTITION, unique, STRAY)}"
    disk.rename(path, aside)
    disk.sync_directory(directory)
    return aside
