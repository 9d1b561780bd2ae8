"""Whom `quorumlog spark sink` asks: coordinators of joint transactions, or an Apache Kafka's topic of decisions.

Both tell of groups in the same words, so that the commands show and refuse the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.messages.joint import ListedJointGroup


class Sinks(Protocol):
    """Each call raises what the client raises. The last two take over the cluster's clients."""

    def groups(self) -> list[ListedJointGroup]:
        """By name."""

    def abort(self, group: ListedJointGroup) -> int:
        """What it has open and has not decided; how many."""

    def forget(self, name: str) -> None:
        """Raises RequestFailed: GROUP_ID_NOT_FOUND, JOINT_GROUP_OPEN."""


def sinks_of(cluster: Cluster) -> Sinks:
    """The cluster says by its features which it is."""
    from quorumlog.spark.write.cluster_delivery import is_quorumlog

    return JointSinks(cluster) if is_quorumlog(cluster) else KafkaSinks(cluster)


class JointSinks:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def groups(self) -> list[ListedJointGroup]:
        return self._cluster.admin.list_joint_groups()

    def abort(self, group: ListedJointGroup) -> int:
        batches = sorted({(child.location, child.sequence) for child in group.open})
        admin = self._cluster.admin
        return sum(admin.abort_joint_batch(group.group_id, location, number).aborted for location, number in batches)

    def forget(self, name: str) -> None:
        self._cluster.admin.forget_joint_group(name)


class KafkaSinks:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def groups(self) -> list[ListedJointGroup]:
        from quorumlog.spark.write.kafka.listing import joint_group_of, list_sinks

        return [joint_group_of(sink) for sink in list_sinks(self._cluster)]

    def abort(self, group: ListedJointGroup) -> int:
        from quorumlog.spark.write.kafka.listing import abort_sink

        return abort_sink(self._cluster, group.group_id)

    def forget(self, name: str) -> None:
        from quorumlog.client.errors import RequestFailed
        from quorumlog.errors import ErrorCode
        from quorumlog.spark.write.kafka.listing import forget_sink

        if not forget_sink(self._cluster, name):
            raise RequestFailed(ErrorCode.GROUP_ID_NOT_FOUND, f"no decision of {name!r} is known")
