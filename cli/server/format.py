"""Formats a node's directories, once, for `quorumlog storage format` and `up`.

A formatted directory names its cluster, its node and its own id. The metadata directory also holds the cluster's
secret. A directory that is formatted already is refused, or with `ignore_formatted` left as it is. In both cases it
must belong to this node and cluster: a directory is never taken over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cli.server.config import NodeConfig
from cli.server.secret import SECRET_NAME, write_secret
from quorumlog.ids import Uuid
from storage.directory import AlreadyFormatted, NotFormatted, format_directory, read_meta
from storage.disk import Disk, parent_of
from storage.meta_properties import MetaProperties, check_directories


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """One directory. fresh: True if it was formatted now, False if it was left as it is."""

    path: str
    directory_id: Uuid
    fresh: bool


def format_node(
    config: NodeConfig,
    *,
    cluster_id: str,
    secret: str,
    disk: Disk,
    new_uuid: Callable[[], Uuid],
    protect: Callable[[str], None],
    ignore_formatted: bool = False,
) -> list[Formatted]:
    """Format every directory of `config`, or none if one is refused.

    cluster_id, secret: the same for all nodes of a cluster.
    Raises AlreadyFormatted, WrongDirectory, BadProperties, CaseInsensitive, DiskError.
    """
    present = [(path, meta) for path in config.directories if (meta := _meta(disk, path)) is not None]
    if present and not ignore_formatted:
        raise AlreadyFormatted(present[0][0])
    check_directories(present, config.node_id, cluster_id)
    known = dict(present)
    for path in config.directories:
        _make_parents(disk, path)
    if not disk.exists(f"{config.metadata_log_dir}/{SECRET_NAME}"):
        _make(disk, config.metadata_log_dir)
        write_secret(disk, config.metadata_log_dir, secret, protect)
    return [_format(disk, path, known.get(path), config, cluster_id, new_uuid) for path in config.directories]


def _format(
    disk: Disk,
    path: str,
    known: MetaProperties | None,
    config: NodeConfig,
    cluster_id: str,
    new_uuid: Callable[[], Uuid],
) -> Formatted:
    if known is not None:
        return Formatted(path=path, directory_id=known.directory_id, fresh=False)
    meta = MetaProperties(cluster_id, config.node_id, new_uuid())
    format_directory(disk, path, meta)
    return Formatted(path=path, directory_id=meta.directory_id, fresh=True)


def _meta(disk: Disk, path: str) -> MetaProperties | None:
    try:
        return read_meta(disk, path)
    except NotFormatted:
        return None


def _make(disk: Disk, path: str) -> None:
    disk.make_directory(path)
    disk.sync_directory(parent_of(path))


def _make_parents(disk: Disk, path: str) -> None:
    """Create the missing directories above `path`."""
    missing, above = [], parent_of(path)
    while above not in ("", "/", ".") and not disk.is_directory(above):
        missing.append(above)
        above = parent_of(above)
    for directory in reversed(missing):
        _make(disk, directory)
