"""The replicas of this broker: those that the committed metadata gives it, each in one of its log directories.

A shell around `reconciler.py`, which finds what changed. A new, changed or removed replica is stepped with an event;
its log is opened, and its leadership taken up, in the background.

A replica may lie in another directory than the metadata says, because this broker chose it or found the replica there.
It is then a pending assignment until the metadata has the right directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.logdirs.log_directory import DirectoryQueue
from broker.logdirs.partition_store import PartitionStore
from broker.partition.events import BrokersChanged, LogFailed, MetadataChanged
from broker.partition.key import PartitionKey
from broker.partition.tail import Tail, TailBudget
from broker.replicas.config import ReplicationConfig
from broker.replicas.opening import Opening
from broker.replicas.reconciler import Placed, changes_of, strays
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica, Step, new_core
from broker.replicas.topic_settings import TopicSettings
from quorum.metadata.delta import Delta
from quorum.metadata.image import Image
from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog.messages.controller import DirectoryAssignment
from storage.names import DELETE, STRAY


class Placements:
    """Only this class changes the registry, until the broker closes."""

    def __init__(
        self,
        node_id: NodeId,
        registry: Registry,
        store: PartitionStore,
        settings: TopicSettings,
        config: ReplicationConfig,
        opening: Opening,
        *,
        step: Step,
        on_assignments_changed: Callable[[], None],
    ) -> None:
        """on_assignments_changed: there are pending assignments."""
        self._node_id = node_id
        self._registry = registry
        self._store = store
        self._settings = settings
        self._config = config
        self._opening = opening
        self._step = step
        self._on_assignments_changed = on_assignments_changed
        self._tail_budget = TailBudget(config.tail_bytes)
        self._eligible: Mapping[NodeId, BrokerEpoch] = {}
        self._applied = False
        self._closed = False

    def close(self) -> None:
        """Ignore every later image."""
        self._closed = True

    def apply(self, delta: Delta, image: Image) -> None:
        """A MetadataListener. Old replicas are removed before new ones are made.

        Logs are opened and leaderships taken up in the background.
        """
        if self._closed:
            return
        self._registry.image = image
        is_first, self._applied = not self._applied, True
        if is_first:
            self._store.set_strays_aside(strays(self._store.found, image, self._node_id))
        changes = changes_of(delta, image, self._node_id)
        for key in changes.deleted:
            self._remove(key, DELETE)
        for key in changes.moved_away:
            self._remove(key, STRAY)
        if changes.eligible is not None:
            self._set_eligible(changes.eligible)
        for placed in (*changes.leaders, *changes.followers):
            self._place(placed)
        for topic in changes.reconfigured:
            self._settings.changed(topic)
        if any(self._is_elsewhere(placed.key) for placed in (*changes.leaders, *changes.followers)):
            self._on_assignments_changed()
        if is_first:
            self._opening.expect(key for key, replica in self._registry.replicas.items() if replica.can_be_opened)

    def pending_assignments(self) -> list[DirectoryAssignment]:
        """Replicas that lie in another directory than the metadata says, in order of topic id and index."""
        return [
            DirectoryAssignment(topic_id=key[0], index=key[1], directory_id=replica.queue.directory_id)
            for key, replica in sorted(self._registry.replicas.items(), key=lambda item: item[0])
            if replica.queue is not None and self._is_elsewhere(key)
        ]

    def directory_failed(self, queue: DirectoryQueue) -> None:
        """Its replicas are offline from now on."""
        for replica in list(self._registry.replicas.values()):
            if replica.queue is queue:
                self._step(replica, LogFailed())

    def _is_elsewhere(self, key: PartitionKey) -> bool:
        replica = self._registry.replicas[key]
        queue = replica.queue
        return queue is not None and queue.is_usable and queue.directory_id != replica.assigned

    def _set_eligible(self, eligible: Mapping[NodeId, BrokerEpoch]) -> None:
        self._eligible = eligible
        for replica in self._registry.replicas.values():
            self._step(replica, BrokersChanged(eligible))

    def _place(self, placed: Placed) -> None:
        replica = self._registry.replicas.get(placed.key)
        if replica is None or replica.queue is None:
            replica = self._registry.replicas[placed.key] = self._new_replica(placed)
        registration = placed.registration
        replica.assigned = registration.directory(self._node_id)
        self._step(
            replica,
            MetadataChanged(
                leader=registration.leader,
                leader_epoch=registration.leader_epoch,
                partition_epoch=registration.partition_epoch,
                replicas=registration.replicas,
                isr=registration.isr,
            ),
        )

    def _new_replica(self, placed: Placed) -> Replica:
        config = self._settings.of(placed.topic)
        assigned = placed.registration.directory(self._node_id)
        replica = Replica(
            topic=placed.topic,
            key=placed.key,
            core=new_core(self._node_id, config, self._config.replica_lag_time_max_ms),
            config=config,
            tail=Tail(self._tail_budget),
            queue=self._store.place(placed.key, assigned, self._registry.replicas.values()),
            assigned=assigned,
        )
        self._step(replica, BrokersChanged(self._eligible))
        if replica.queue is None:
            self._step(replica, LogFailed())
        return replica

    def _remove(self, key: PartitionKey, mark: str) -> None:
        replica = self._registry.replicas.pop(key, None)
        if replica is not None:
            self._step(replica, LogFailed())
            self._store.let_go(replica, mark)
