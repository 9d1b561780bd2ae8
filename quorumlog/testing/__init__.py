"""Real clusters for tests: `LocalCluster`, and the pytest fixtures of the package (`plugin.py`).

Nothing heavy is imported before a name is used, because pytest loads the plugin in every project that has quorumlog
installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorumlog.testing.cluster import LocalCluster

__all__ = ["LocalCluster"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'quorumlog.testing' has no attribute {name!r}")
    from quorumlog.testing import cluster

    return getattr(cluster, name)
