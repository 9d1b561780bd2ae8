"""The local cluster of a working directory, or of the nearest directory above it that has one."""

from __future__ import annotations

from pathlib import Path

from quorumlog.testing.layout import has_cluster, read_layout
from quorumlog.testing.protected import Access
from quorumlog_cli.profiles.profile import Here

FOLDER = ".quorumlog"


def read_here(start: Path) -> Here | None:
    """start: absolute. Raises LayoutError if its marker cannot be read."""
    for folder in (start, *start.parents):
        if has_cluster(folder / FOLDER):
            layout = read_layout(folder / FOLDER)
            return Here(
                root=layout.root,
                cluster_id=layout.cluster_id,
                bootstrap_servers=layout.bootstrap_servers,
                is_below=folder != start,
                security=Access(layout).profile() if layout.user else {},
            )
    return None
