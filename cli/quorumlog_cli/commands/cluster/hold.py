"""Whether a cluster keeps everything, as one that was restored does until an operator lets go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog.configs.topic import RETENTION_PAUSED

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster

HELD = (
    f"retention, compaction and expiry are held ({RETENTION_PAUSED} is on for all brokers, as a restore leaves it); "
    "quorumlog restore release lets go"
)


def is_held(cluster: Cluster) -> bool:
    """Raises what `describe_configs` raises."""
    from quorumlog.client.admin import BROKER_RESOURCE

    found = cluster.admin.describe_configs("", resource_type=BROKER_RESOURCE, names=(RETENTION_PAUSED,))
    return any(one.name == RETENTION_PAUSED and one.value == "true" for one in found.configs)


def let_go(cluster: Cluster) -> None:
    """Raises what `alter_configs` raises."""
    from quorumlog.client.admin import BROKER_RESOURCE

    cluster.admin.alter_configs("", {RETENTION_PAUSED: None}, resource_type=BROKER_RESOURCE)
