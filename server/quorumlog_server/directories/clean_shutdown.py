"""Which log directories a node that stops leaves in order: each of them gets a marker of a clean shutdown.

Each directory is judged by itself (Kafka's LogManager.shutdown). One that has failed, or whose logs could not be
closed, costs the others nothing: they start without recovery. The directory with the metadata log is in order only if
that log was closed, too.

What this process has not opened is as it was before: it keeps the marker that the start has taken.
"""

from __future__ import annotations

from collections.abc import Container

from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.directories import NodeDirectories
from quorumlog_storage.directory.directory import LockedDirectory


def left_clean(
    config: NodeConfig, directories: NodeDirectories, closed: Container[str] | None, quorum_closed: bool | None
) -> frozenset[str]:
    """Paths of the directories that get a marker.

    closed: of those whose partitions the broker has closed in order; None: no broker was made. quorum_closed: whether
    the metadata log is closed in order; None: it was not opened.
    """
    return frozenset(
        entry.path
        for entry in directories.opened
        if directories.lives[entry.path].failure is None
        and _partitions_in_order(config, entry, closed)
        and (entry.path != config.metadata_log_dir or _or_as_before(quorum_closed, entry))
    )


def _partitions_in_order(config: NodeConfig, entry: LockedDirectory, closed: Container[str] | None) -> bool:
    if not config.is_broker or entry.path not in config.log_dirs:
        return True
    return _or_as_before(None if closed is None else entry.path in closed, entry)


def _or_as_before(closed: bool | None, entry: LockedDirectory) -> bool:
    return closed if closed is not None else entry.clean_shutdown is not None
