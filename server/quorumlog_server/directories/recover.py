"""`quorumlog storage recover`: one stopped survivor of a lost majority becomes the whole quorum.

All directories of the node are locked meanwhile. See quorumlog_quorum/offline/lost_majority.py for the order of the
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation, next_incarnation
from quorumlog.ids import Uuid
from quorumlog.records.control import Voter, VoterEndpoint
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog_quorum.offline.lost_majority import (
    INTENT_NAME,
    Intent,
    RecoveryRefused,
    new_epoch,
    read_intent,
    write_intent,
    write_recovery,
)
from quorumlog_quorum.offline.metadata_survey import MetadataSurvey, survey
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.parts import metadata_log_config
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.directory import LOCK_NAME, read_meta
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, MetaProperties, check_directories
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.atomic import remove_durably, write_atomically
from quorumlog_storage.files.disk import Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """kept: the records before intent.end_offset, of epochs up to intent.last_epoch. others: what each of the other
    directories holds. was_resumed: an interrupted recovery was finished."""

    cluster_id: str
    intent: Intent
    others: tuple[tuple[str, MetadataSurvey], ...]
    was_resumed: bool


def recover(
    disk: Disk,
    config: NodeConfig,
    *,
    new_uuid: Callable[[], Uuid],
    wall_ms: int,
    unsafe: bool,
    others: Sequence[str] = (),
) -> Recovered:
    """others: metadata directories of other nodes, or copies of them, that must not hold more than this node does.

    Raises RecoveryRefused, also without `unsafe`, NotFormatted, WrongDirectory, DirectoryLocked, MetadataGap; then
    nothing was changed. After DiskError the same command may be given again.
    """
    if not config.is_controller:
        raise RecoveryRefused(f"node {config.node_id} is not a controller (process.roles): run it on one that survived")
    with locked_directories(disk, config) as metas:
        known = metas[config.metadata_log_dir]
        survivor = _voter(config, known.directory_id)
        path = f"{config.metadata_log_dir}/{METADATA_DIRECTORY}"
        intent = read_intent(disk, config.metadata_log_dir)
        surveyed = tuple((other, survey(disk, metadata_log_in(disk, other))) for other in others)
        resumed = intent is not None
        if intent is None:
            check_directories(list(metas.items()), config.node_id, None)
            _check(config, survivor, survey(disk, path), surveyed, unsafe)
        log = _opened(disk, config, path)
        kept = survey(disk, path, None if intent is None else intent.end_offset)
        if intent is None:
            intent = Intent(
                incarnation=next_incarnation(known.incarnation, new_uuid()),
                end_offset=kept.end_offset,
                last_epoch=kept.last_epoch,
                epoch=new_epoch(disk, path, kept),
            )
            write_intent(disk, config.metadata_log_dir, intent)
        write_recovery(disk, log, intent, kept, survivor, wall_ms)
        for directory, meta in metas.items():
            write_meta(disk, directory, meta, intent.incarnation)
        remove_durably(disk, f"{config.metadata_log_dir}/{INTENT_NAME}")
        return Recovered(cluster_id=known.cluster_id, intent=intent, others=surveyed, was_resumed=resumed)


def write_meta(disk: Disk, directory: str, meta: MetaProperties, incarnation: ClusterIncarnation) -> None:
    """Move a directory into a later incarnation. Durable when it returns."""
    content = replace(meta, incarnation=incarnation).render(f"of cluster incarnation {incarnation}")
    write_atomically(disk, f"{directory}/{META_PROPERTIES}", content)


def metadata_log_in(disk: Disk, place: str) -> str:
    """place: a metadata log, or the log directory that holds it."""
    inner = f"{place}/{METADATA_DIRECTORY}"
    return inner if disk.is_directory(inner) else place


@contextmanager
def locked_directories(disk: Disk, config: NodeConfig) -> Iterator[dict[str, MetaProperties]]:
    """The properties of all directories of a node that does not run, by path."""
    with ExitStack() as stack:
        metas = {}
        for path in config.directories:
            metas[path] = read_meta(disk, path)
            stack.callback(disk.lock(f"{path}/{LOCK_NAME}").release)
        of_one_node = [(path, replace(meta, incarnation=FIRST)) for path, meta in metas.items()]
        check_directories(of_one_node, config.node_id, None)
        yield metas


def _opened(disk: Disk, config: NodeConfig, path: str) -> CheckpointedLog:
    """Recovered from an unclean end, and on disk."""
    return CheckpointedLog.open(
        disk,
        path,
        metadata_log_config(config),
        OffsetFile(disk, f"{path}/{RECOVERY_POINTS}"),
        METADATA_PARTITION,
        clean=False,
        on_loss=partial(OffsetFile(disk, f"{path}/{LOST_OFFSETS}").raise_to, METADATA_PARTITION),
    )


def _voter(config: NodeConfig, directory_id: Uuid) -> Voter:
    name = config.internal_listener.name
    address = config.advertised[name]
    return Voter(config.node_id, directory_id, (VoterEndpoint(name, address.host, address.port),), 0, 1)


def _check(
    config: NodeConfig,
    survivor: Voter,
    found: MetadataSurvey,
    others: Sequence[tuple[str, MetadataSurvey]],
    unsafe: bool,
) -> None:
    if found.end_offset == 0:
        raise RecoveryRefused(f"the metadata log in {config.metadata_log_dir} is empty: there is nothing to recover")
    voters = found.voters.voters if found.voters is not None else ()
    if [(voter.id, voter.directory_id) for voter in voters] == [(survivor.id, survivor.directory_id)]:
        raise RecoveryRefused(
            f"node {config.node_id} is the only voter already, so no majority is lost: start it; if other nodes are "
            f"refused, format them for cluster incarnation {found.image.incarnation}"
        )
    for place, other in others:
        if other.reach > found.reach:
            raise RecoveryRefused(
                f"{place} holds more: it ends at offset {other.end_offset} of epoch {other.last_epoch}, this node at "
                f"{found.end_offset} of epoch {found.last_epoch}; recover the node of that directory, or leave out the "
                "option to lose what only it holds"
            )
    if not unsafe:
        raise RecoveryRefused(
            "what only the lost voters hold would be lost for ever: all metadata from offset "
            f"{found.end_offset} on (the last record here is of epoch {found.last_epoch}), such as the newest topics, "
            "settings and in-sync replicas; say --unsafe to accept that"
        )
