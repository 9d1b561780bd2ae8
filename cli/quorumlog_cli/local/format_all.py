"""Formats the nodes of `up`, like `quorumlog storage format`, but in this process, which has loaded the modules."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quorumlog.testing.layout import Layout, LayoutError
from quorumlog.testing.nodes import node_environment

if TYPE_CHECKING:
    from quorumlog_server.directories.first_metadata import FirstUser


def format_all(layout: Layout) -> None:
    """One secret for all nodes, and the first user of a cluster with TLS. Raises LayoutError."""
    from quorumlog_server.config.config import read_config
    from quorumlog_server.config.properties import ConfigError
    from quorumlog_server.directories.format_here import format_here
    from quorumlog_server.directories.secret import SECRET_BYTES, new_secret
    from quorumlog_storage.directory.directory import CaseInsensitive
    from quorumlog_storage.files.disk import DiskError

    secret = new_secret(os.urandom(SECRET_BYTES))
    try:
        for config in [read_config(str(node.config), (), node_environment()) for node in layout.nodes]:
            format_here(config, layout.cluster_id, secret, first_users=_first_users(layout))
    except (ConfigError, CaseInsensitive, DiskError) as error:
        raise LayoutError(f"formatting {layout.root} failed: {error}") from error


def _first_users(layout: Layout) -> list[FirstUser]:
    if not layout.user:
        return []
    from quorumlog.security.sasl.scram_format import read_scram_argument
    from quorumlog.security.secret import Secret
    from quorumlog.testing.protected import Access, first_user

    return [(read_scram_argument(first_user(layout)), Secret(Access(layout).password()))]
