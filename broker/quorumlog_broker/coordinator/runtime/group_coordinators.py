"""The coordinators of groups on this broker: one for each partition of `__consumer_offsets` that it leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from uuid import UUID

from quorumlog.clock import Clock
from quorumlog.ids import Epoch, NodeId, Uuid
from quorumlog.nursery import Nursery
from quorumlog.settings.groups import GroupConfig
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.coordinators import Coordinators
from quorumlog_broker.coordinator.runtime.group_coordinator import GroupCoordinator
from quorumlog_broker.coordinator.runtime.group_metadata import GroupMetadata
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image


class GroupCoordinators(Coordinators[GroupCoordinator]):
    TOPIC, NAMED = CONSUMER_OFFSETS, "group"

    def __init__(
        self,
        *,
        node_id: NodeId,
        config: GroupConfig,
        image: Callable[[], Image],
        appends: OwnAppends,
        clock: Clock,
        turn: Turn,
        nursery: Nursery,
        rng: Random,
        in_service: Callable[[], bool] = lambda: True,
    ) -> None:
        """in_service: no other broker can have taken over, as far as this one knows."""
        super().__init__(node_id=node_id, image=image, appends=appends, clock=clock, turn=turn, nursery=nursery)
        self._config, self._rng, self._in_service = config, rng, in_service
        self._cluster = GroupMetadata(node_id, config.consumer)

    def _make(self, replica: Replica, leader_epoch: Epoch) -> GroupCoordinator:
        return GroupCoordinator(
            replica,
            leader_epoch,
            self._node,
            config=self._config,
            cluster=self._cluster,
            new_uuid=self._new_uuid,
            in_service=self._in_service,
        )

    def on_metadata(self, delta: Delta, image: Image) -> None:
        """The cluster has changed, and this broker has done what concerns its replicas."""
        self._cluster.apply(delta, image)
        self.topics_deleted((topic.name, topic.id) for topic in delta.deleted_topics)

    def topics_deleted(self, topics: Iterable[tuple[str, Uuid]]) -> None:
        """(name, id) of topics that were deleted."""
        for name, topic_id in topics:
            for coordinator in self._led.values():
                coordinator.topic_deleted(name, topic_id)

    def _new_uuid(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))
