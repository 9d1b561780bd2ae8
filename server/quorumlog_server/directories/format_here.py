"""Formats directories on this machine's disk, for `quorumlog storage format` and `up`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.first_voters import STATIC, FirstVoters
from quorumlog_server.directories.format import Formatted, format_node
from quorumlog_server.edge.random_uuid import random_uuid
from quorumlog_storage.edge.disk import RealDisk

if TYPE_CHECKING:
    from quorumlog_server.directories.first_metadata import FirstUser

_OWNER_ONLY = 0o600


def format_here(
    config: NodeConfig,
    cluster_id: str,
    secret: str,
    *,
    incarnation: ClusterIncarnation = FIRST,
    first_voters: FirstVoters = STATIC,
    first_level: int | None = None,
    first_users: Sequence[FirstUser] = (),
    ignore_formatted: bool = False,
) -> list[Formatted]:
    """See `format_node`."""
    return format_node(
        config,
        cluster_id=cluster_id,
        secret=secret,
        disk=RealDisk(),
        new_uuid=random_uuid,
        protect=lambda path: os.chmod(path, _OWNER_ONLY),
        incarnation=incarnation,
        first_voters=first_voters,
        first_level=first_level,
        first_users=first_users,
        ignore_formatted=ignore_formatted,
    )
