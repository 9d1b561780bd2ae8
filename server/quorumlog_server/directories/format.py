"""Formats a node's directories, once, for `quorumlog storage format` and `up`.

A formatted directory names its cluster, its node and its own id. The metadata directory also holds the cluster's
secret. A directory that is formatted already is refused, or with `ignore_formatted` left as it is. In both cases it
must belong to this node and cluster: a directory is never taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.ids import ZERO_UUID, Uuid, format_uuid
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.first_voters import (
    STATIC,
    FirstVoters,
    check_first_voters,
    directory_id_of,
    write_first_voters,
)
from quorumlog_server.directories.secret import SECRET_NAME, write_secret
from quorumlog_storage.directory.directory import AlreadyFormatted, NotFormatted, format_directory, read_meta
from quorumlog_storage.directory.meta_properties import MetaProperties, WrongDirectory, check_directories
from quorumlog_storage.files.disk import Disk, parent_of

if TYPE_CHECKING:
    from quorumlog.messages.metadata_records import MetadataRecord
    from quorumlog_server.directories.first_metadata import FirstUser


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
    incarnation: ClusterIncarnation = FIRST,
    first_voters: FirstVoters = STATIC,
    first_level: int | None = None,
    first_users: Sequence[FirstUser] = (),
    first_records: Sequence[MetadataRecord] = (),
    ignore_formatted: bool = False,
) -> list[Formatted]:
    """Format every directory of `config`, or none if one is refused.

    cluster_id, secret, incarnation: the same for all nodes of a cluster.
    first_level, first_users, first_records: of a cluster that begins now; the records come behind the users. The
    level is that of metadata.version; None: the highest.
    Raises AlreadyFormatted, FormatRefused, WrongDirectory, BadProperties, CaseInsensitive, DiskError.
    """
    present = [(path, meta) for path in config.directories if (meta := _meta(disk, path)) is not None]
    if present and not ignore_formatted:
        raise AlreadyFormatted(present[0][0])
    check_directories(present, config.node_id, cluster_id)
    for path, meta in present:
        if meta.incarnation != incarnation:
            raise WrongDirectory(
                f"{path} is of cluster incarnation {meta.incarnation}, not {incarnation}; say --cluster-incarnation "
                f"{meta.incarnation}, or move the directory away first"
            )
    identity = MetaProperties(cluster_id, config.node_id, ZERO_UUID, incarnation)
    known = dict(present)
    if config.metadata_log_dir not in known or not first_voters.are_static:
        check_first_voters(config, first_voters)
    if first_level is not None or first_users:
        from quorumlog_server.directories.first_metadata import (  # the quorum's modules
            check_first_metadata,
            write_first_metadata,
        )

        check_first_metadata(first_level, first_users)
    own_id = directory_id_of(config, first_voters)
    _check_own_id(known, config.metadata_log_dir, own_id)
    for path in config.directories:
        make_with_parents(disk, path, itself=False)
    if not disk.exists(f"{config.metadata_log_dir}/{SECRET_NAME}"):
        _make(disk, config.metadata_log_dir)
        write_secret(disk, config.metadata_log_dir, secret, protect)
    metas = {path: known.get(path) or replace(identity, directory_id=new_uuid()) for path in config.directories}
    if own_id is not None:
        metas[config.metadata_log_dir] = replace(metas[config.metadata_log_dir], directory_id=own_id)
    if config.metadata_log_dir not in known:  # before its meta.properties, which says that all is there
        _make(disk, config.metadata_log_dir)
        write_first_voters(disk, config, first_voters, metas[config.metadata_log_dir].directory_id)
        if (first_level is not None or first_users) and config.is_controller:
            write_first_metadata(
                disk,
                config.metadata_log_dir,
                first_level,
                first_users,
                first_records,
                seed=secret.encode(),
                protect=protect,
            )
    return [_format(disk, path, metas[path], fresh=path not in known) for path in config.directories]


def _format(disk: Disk, path: str, meta: MetaProperties, *, fresh: bool) -> Formatted:
    if fresh:
        format_directory(disk, path, meta)
    return Formatted(path=path, directory_id=meta.directory_id, fresh=fresh)


def _check_own_id(known: dict[str, MetaProperties], path: str, own_id: Uuid | None) -> None:
    if own_id is not None and path in known and known[path].directory_id != own_id:
        raise WrongDirectory(
            f"{path} has directory id {format_uuid(known[path].directory_id)}, --initial-controllers says "
            f"{format_uuid(own_id)}; name the one that it has, or format an empty directory"
        )


def _meta(disk: Disk, path: str) -> MetaProperties | None:
    try:
        return read_meta(disk, path)
    except NotFormatted:
        return None


def _make(disk: Disk, path: str) -> None:
    disk.make_directory(path)
    disk.sync_directory(parent_of(path))


def make_with_parents(disk: Disk, path: str, *, itself: bool = True) -> None:
    """Create the missing directories above `path`, and the directory unless it is there."""
    missing, above = [], path if itself else parent_of(path)
    while above not in ("", "/", ".") and not disk.is_directory(above):
        missing.append(above)
        above = parent_of(above)
    for directory in reversed(missing):
        _make(disk, directory)
