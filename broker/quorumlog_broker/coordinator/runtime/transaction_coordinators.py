"""The coordinators of transactions on this broker: one for each partition of `__transaction_state` that it leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorumlog.clock import Clock
from quorumlog.ids import Epoch, NodeId
from quorumlog.nursery import Nursery
from quorumlog.settings.transactions import TransactionConfig
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.coordinator import State
from quorumlog_broker.coordinator.runtime.coordinators import Coordinators
from quorumlog_broker.coordinator.runtime.marker_sender import MarkerSender
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.runtime.transaction_coordinator import TransactionCoordinator, TransactionSources
from quorumlog_broker.coordinator.transactions.marker_lanes import Owner
from quorumlog_broker.coordinator.transactions.markers import MarkerQueues, MarkerResult
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image


class TransactionCoordinators(Coordinators[TransactionCoordinator]):
    """new_producer_id: see `TransactionShard`."""

    TOPIC, NAMED = TRANSACTION_STATE, "transactional id"

    def __init__(
        self,
        *,
        node_id: NodeId,
        config: TransactionConfig,
        image: Callable[[], Image],
        appends: OwnAppends,
        peers: Peers,
        new_producer_id: Callable[[], int | None],
        clock: Clock,
        turn: Turn,
        nursery: Nursery,
    ) -> None:
        super().__init__(node_id=node_id, image=image, appends=appends, clock=clock, turn=turn, nursery=nursery)
        self._config = config
        self._sources = TransactionSources(
            transaction_version=lambda: image().transaction_version,
            joint_version=lambda: image().joint_version,
            new_producer_id=new_producer_id,
            partition_exists=self._partition_exists,
            partitions=self._state_partitions,
        )
        queues = MarkerQueues(self._leader_of, self._partition_exists, config.max_pending_markers)
        self.markers = MarkerSender(queues, peers, self._tell, clock=clock, turn=turn, nursery=nursery)

    def _make(self, replica: Replica, leader_epoch: Epoch) -> TransactionCoordinator:
        return TransactionCoordinator(
            replica,
            leader_epoch,
            self._node,
            config=self._config,
            sources=self._sources,
            on_decided=self.markers.offer,
            on_dropped=self.markers.remove,
        )

    def _tell(self, results: Iterable[MarkerResult]) -> None:
        by_owner: dict[Owner, list[MarkerResult]] = {}
        for result in results:
            by_owner.setdefault(result.marker.owner, []).append(result)
        for coordinator in [*self._led.values()]:
            if coordinator.owner in by_owner and coordinator.state is State.ACTIVE:
                coordinator.markers_ended(by_owner[coordinator.owner])

    # --- the cluster, as this broker knows it ---

    def leader_for(self, transactional_id: str) -> NodeId | None:
        """The broker that coordinates the id; None: none does now. Raises ApiError(NOT_COORDINATOR) as `index_of`."""
        return self._leader_of(TRANSACTION_STATE, self.index_of(transactional_id))

    def _partition_exists(self, topic: str, index: int) -> bool:
        found = self._image().topic(topic)
        return found is not None and index in found.partitions

    def _state_partitions(self) -> int:
        """1 where the topic was just deleted: the coordinator's log leaves, too, with what is written now."""
        found = self._image().topic(TRANSACTION_STATE)
        return 1 if found is None else len(found.partitions)

    def _leader_of(self, topic: str, index: int) -> NodeId | None:
        image = self._image()
        found = image.topic(topic)
        partition = None if found is None else found.partitions.get(index)
        leader = None if partition is None else image.brokers.get(partition.leader)
        return None if leader is None or leader.fenced else leader.broker_id
