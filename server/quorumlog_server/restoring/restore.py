"""`quorumlog restore`: a node's directories of a new cluster, made from a backup while nothing runs.

Order: every directory is empty or not there; the partitions of this node are written, each under its name once it is
durable; then the node is formatted, `meta.properties` last. A restore that broke off leaves directories that no node
starts on and no restore takes: remove them and begin again.

Invariants: all nodes of a restore get equal records of a partition, and equal first metadata. The cluster has an id of
its own, so that no node of the old one can join it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.backup.manifest import BackedUpPartition
from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import UUID_BYTES, NodeId, Uuid
from quorumlog.records.open_transactions import OpenTransactions
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.first_voters import STATIC, FirstVoters, FormatRefused, check_first_voters
from quorumlog_server.directories.format import format_node, make_with_parents
from quorumlog_server.restoring.backup_folder import Backup
from quorumlog_server.restoring.ended_transactions import TransactionStates, empty_batch
from quorumlog_server.restoring.new_metadata import Places, first_records, places
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.foreign.export import Export

TAKE_BYTES = 1 << 20  # of batches that are appended at once


class RestoreRefused(Exception):
    """Nothing was changed. The message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """cluster_id, secret: of the new cluster, the same for all nodes. nodes: ascending. first_voters: of the node; no
    list of initial controllers, whose directory ids would be others than those that all nodes know."""

    backup: Backup
    cluster_id: str
    secret: str
    nodes: tuple[NodeId, ...]
    first_voters: FirstVoters = STATIC

    @property
    def places(self) -> Places:
        return places(self.backup.image, self.backup.manifest, self.nodes)

    def directory_id(self, node: NodeId) -> Uuid:
        """Of the directory that takes the node's replicas; every node knows those of the others."""
        made = hashlib.sha256(f"restored {self.cluster_id} {node}".encode()).digest()
        return made[:UUID_BYTES]


def check_empty(disk: Disk, config: NodeConfig) -> None:
    """Raises RestoreRefused."""
    for path in config.directories:
        if disk.is_directory(path) and disk.list(path):
            raise RestoreRefused(
                f"{path} is not empty: a restore never writes beside other data. Stop the node and move the directory "
                "away, or name another one"
            )


def restore_node(
    disk: Disk,
    config: NodeConfig,
    plan: RestorePlan,
    *,
    new_uuid: Callable[[], Uuid],
    protect: Callable[[str], None],
    on_bytes: Callable[[int], None] = lambda _size: None,
) -> int:
    """Make the node's directories. Returns how many replicas it has. on_bytes: of records, as they are written.

    Raises RestoreRefused, BadBackup, DiskError, and what `format_node` raises."""
    check_empty(disk, config)
    if config.node_id not in plan.nodes:
        raise RestoreRefused(f"node {config.node_id} is not among the nodes of the new cluster, {plan.nodes}")
    try:
        check_first_voters(config, plan.first_voters)
    except FormatRefused as error:
        raise RestoreRefused(str(error)) from error
    target = config.directories[0]
    make_with_parents(disk, target)
    where, count = plan.places, 0
    for one in plan.backup.manifest.partitions:
        if config.node_id in where[one.topic, one.index]:
            _write_replica(disk, target, plan, one, on_bytes)
            count += 1
    directories = {node: plan.directory_id(node) for node in plan.nodes}
    ids = iter([directories[config.node_id]])
    format_node(
        config,
        cluster_id=plan.cluster_id,
        secret=plan.secret,
        disk=disk,
        new_uuid=lambda: next(ids, None) or new_uuid(),
        protect=protect,
        first_voters=plan.first_voters,
        first_level=plan.backup.image.metadata_version,
        first_records=tuple(first_records(plan.backup.image, plan.backup.manifest, where, directories)),
    )
    return count


def _write_replica(
    disk: Disk, target: str, plan: RestorePlan, one: BackedUpPartition, on_bytes: Callable[[int], None]
) -> None:
    image = plan.backup.image
    config = TopicConfig.from_map(image.topic_config(one.topic))
    export = Export(
        disk,
        target,
        (one.topic, one.index),
        plan.backup.manifest.topics[one.topic],
        segment_bytes=config.segment_bytes,
        interval_bytes=config.index_interval_bytes,
    )
    opened, states = OpenTransactions(), TransactionStates()
    is_of_transactions = one.topic == TRANSACTION_STATE
    waiting, size, end = [], 0, one.start
    for header, data in plan.backup.batches(one):
        opened.follow(header, data)
        if is_of_transactions:
            states.follow(header, data)
        waiting.append(data)
        size, end = size + len(data), header.next_offset
        if size >= TAKE_BYTES:
            export.take(b"".join(waiting), one.start)
            on_bytes(size)
            waiting, size = [], 0
    if end < one.end:  # compaction took the last records before the cut, and groups may have read so far
        waiting.append(empty_batch(end, one.end, one.last_epoch))
        end = one.end
    waiting += opened.abort_markers(end, one.last_epoch)
    if is_of_transactions:
        waiting += states.abort_open(
            end, one.last_epoch, plan.backup.manifest.cut_ms, min(1, image.transaction_version)
        )
    export.take(b"".join(waiting), one.start)
    on_bytes(size)
    export.finish(one.start, export.end_offset)
