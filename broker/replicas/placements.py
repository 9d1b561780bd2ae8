"""Which replicas this broker has: those that the committed metadata gives it, each in a log directory of its own.

A shell around `reconciler.py`, which says what has changed. What a new, changed or lost replica does by itself is told
to it as an event; its log is opened, and leadership taken up, in the background.

A replica may lie in another directory than the metadata says (it was placed before it was told, or it was found
there): such ones are pending assignments until the metadata has followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.logdirs.partition_store import PartitionStore
from broker.partition.events import BrokersChanged, LogFailed, MetadataChanged
from broker.partition.tail import Tail, TailBudget
from broker.replicas.config import ReplicationConfig
from broker.replicas.opening import Opening
from broker.replicas.reconciler import PartitionKey, Placed, changes_of, strays
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica, Step, new_core
from broker.replicas.topic_settings import TopicSettings
from quorum.metadata.delta import Delta
from quorum.metadata.image import Image
from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog.messages.controller import DirectoryAssignment
from storage.names import DELETE, STRAY


class Placements:
    """The only writer of the registry, but for its end."""

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
        let_go: Callable[[Replica], None],
        on_assignments_changed: Callable[[], None],
    ) -> None:
        """let_go: the replica leaves; nothing of this broker may use it any more."""
        self._node_id = node_id
        self._registry = registry
        self._store = store
        self._settings = settings
        self._config = config
        self._opening = opening
        self._step = step
        self._let_go = let_go
        self._on_assignments_changed = on_assignments_changed
        self._tail_budget = TailBudget(config.tail_bytes)
        self._eligible: Mapping[NodeId, BrokerEpoch] = {}
        self._applied = False

    def apply(self, delta: Delta, image: Image) -> None:
        """In the order of the metadata; what goes makes room before what comes."""
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
            self._tell_eligible(changes.eligible)
        for placed in (*changes.leaders, *changes.followers):
            self._place(placed)
        for topic in changes.reconfigured:
            self._settings.changed(topic)
        if any(self._is_elsewhere(placed.key) for placed in (*changes.leaders, *changes.followers)):
            self._on_assignments_changed()
        if is_first:
            self._opening.expect(key for key, replica in self._registry.replicas.items() if replica.can_be_opened)

    def pending_assignments(self) -> list[DirectoryAssignment]:
        """Replicas whose directory is not the one that the metadata says, in order of topic id and index."""
        return [
            DirectoryAssignment(topic_id=key[0], index=key[1], directory_id=replica.queue.directory_id)
            for key, replica in sorted(self._registry.replicas.items(), key=lambda item: item[0])
            if replica.queue is not None and self._is_elsewhere(key)
        ]

    def _is_elsewhere(self, key: PartitionKey) -> bool:
        replica = self._registry.replicas[key]
        queue = replica.queue
        return queue is not None and queue.is_usable and queue.directory_id != replica.assigned

    def _tell_eligible(self, eligible: Mapping[NodeId, BrokerEpoch]) -> None:
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
            self._let_go(replica)
            self._store.let_go(replica, mark)
