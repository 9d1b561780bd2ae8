"""The replicas of this broker: those that the committed metadata gives it, each in one of its log directories.

A shell around `reconciler.py`, which finds what changed, and `own_life.py`, which decides what this process may act on.
A new, changed or removed replica is stepped with an event; its log is opened, and its leadership taken up, in the
background. Until this process is registered, the logs that its disks hold are opened and nothing else happens to them:
an older image may not know a topic that was created since, so strays are judged by the first image with the
registration.

A large delta (a topic of 10,000 partitions, or a broker that was fenced) is applied in steps, some replicas in each.
Between two steps some replicas follow the new image and others the one before it, as on two brokers that apply it one
after the other.

A replica may lie in another directory than the metadata says, because this broker chose it or found the replica there.
It is then a pending assignment until the metadata has the right directory. A replica that is offline although its
directory is not is assigned to LOST; the controller then elects another leader (decision 18). It is assigned to its
directory again once a later process has opened its log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from broker.logdirs.log_directory import DirectoryQueue
from broker.logdirs.partition_store import PartitionStore
from broker.partition.events import BrokersChanged, LogFailed, MetadataChanged
from broker.partition.key import PartitionKey
from broker.partition.tail import Tail, TailBudget
from broker.replicas.config import ReplicationConfig
from broker.replicas.opening import Opening
from broker.replicas.own_life import OwnLife
from broker.replicas.reconciler import Placed, changes_of, strays
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica, Step, new_core
from broker.replicas.topic_settings import TopicSettings
from quorum.listener import Steps
from quorum.metadata.delta import Delta
from quorum.metadata.image import Image
from quorum.metadata.registration import LOST
from quorumlog.ids import BrokerEpoch, NodeId, Uuid
from quorumlog.messages.controller import DirectoryAssignment
from storage.names import DELETE, STRAY

T = TypeVar("T")


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
        own_life: OwnLife,
        *,
        step: Step,
        open_log: Callable[[Replica], None],
        on_assignments_changed: Callable[[], None],
    ) -> None:
        """open_log: open the log of a replica that has no leader yet. on_assignments_changed: some are pending."""
        self._node_id = node_id
        self._registry = registry
        self._store = store
        self._settings = settings
        self._config = config
        self._opening = opening
        self._own_life = own_life
        self._step = step
        self._open_log = open_log
        self._on_assignments_changed = on_assignments_changed
        self._tail_budget = TailBudget(config.tail_bytes)
        self._eligible: Mapping[NodeId, BrokerEpoch] = {}
        self._applied = False
        self._closed = False

    def close(self) -> None:
        """Ignore every later image."""
        self._closed = True

    def apply(self, delta: Delta, image: Image) -> Steps:
        """A MetadataListener. Old replicas are removed before new ones are made.

        Logs are opened and leaderships taken up in the background. The next image must wait for the last step.
        """
        if self._closed:
            return
        self._registry.image = image
        is_first, self._applied = not self._applied, True
        changes = yield from changes_of(delta, image, self._node_id)
        yield from self._paced(changes.deleted, lambda key: self._remove(key, DELETE))
        yield from self._paced(changes.moved_away, lambda key: self._remove(key, STRAY))
        if changes.eligible is not None:
            yield from self._set_eligible(changes.eligible)
        placed = (*changes.leaders, *changes.followers)
        yield from self._paced(placed, self._host)
        yield from self._act(placed, image, is_first)
        yield from self._paced(changes.reconfigured, self._settings.changed)
        if not self._closed and any(self._is_elsewhere(one.key) for one in placed):
            self._on_assignments_changed()

    def pending_assignments(self) -> list[DirectoryAssignment]:
        """Replicas that lie elsewhere than the metadata says: lost ones first, then by topic id and index."""
        pending = [
            DirectoryAssignment(
                topic_id=key[0], index=key[1], directory_id=directory, keeps_log=key in self._store.found
            )
            for key, replica in sorted(self._registry.replicas.items(), key=lambda item: item[0])
            if (directory := _directory_of(replica)) not in (None, replica.assigned)
        ]
        return sorted(pending, key=lambda one: one.directory_id != LOST)

    def directory_failed(self, queue: DirectoryQueue) -> None:
        """Its replicas are offline from now on."""
        for replica in list(self._registry.replicas.values()):
            if replica.queue is queue:
                self._step(replica, LogFailed())

    def _paced(self, items: Iterable[T], act: Callable[[T], None]) -> Steps:
        """Act on each item; nothing more once the broker has closed."""
        for number, item in enumerate(items, 1):
            if self._closed:
                return
            act(item)
            if number % self._config.max_slice_work == 0:
                yield

    def _act(self, placed: Sequence[Placed], image: Image, is_first: bool) -> Steps:
        """Tell the replicas what this life of the broker was given; open the logs of those that it must hold back.

        The logs that the broker waits for are noted before the first of them is opened.
        """
        if self._closed:
            return
        had_begun = self._own_life.has_begun
        admitted = self._own_life.admit(placed, image)
        if self._own_life.has_begun and not had_begun:
            self._store.set_strays_aside(strays(self._store.found, image, self._node_id))
        if is_first:
            self._opening.expect(key for key in self._registry.replicas if self._is_being_opened(key))
        yield from self._paced(admitted, self._tell)
        yield from self._paced(placed, self._open_if_held)

    def _open_if_held(self, placed: Placed) -> None:
        if self._own_life.is_held(placed.key) and placed.key in self._store.found:
            self._open_log(self._registry.replicas[placed.key])

    def _is_being_opened(self, key: PartitionKey) -> bool:
        """A log that is not there yet is made only after the registration."""
        is_wanted = not self._own_life.is_held(key) or key in self._store.found
        return is_wanted and self._registry.replicas[key].can_be_opened

    def _is_elsewhere(self, key: PartitionKey) -> bool:
        replica = self._registry.replicas[key]
        return _directory_of(replica) not in (None, replica.assigned)

    def _set_eligible(self, eligible: Mapping[NodeId, BrokerEpoch]) -> Steps:
        self._eligible = eligible
        event = BrokersChanged(eligible)
        yield from self._paced(list(self._registry.replicas.values()), lambda replica: self._step(replica, event))

    def _host(self, placed: Placed) -> None:
        """There is a replica, in the directory that it is assigned to or where it lies."""
        replica = self._registry.replicas.get(placed.key)
        if replica is None or replica.queue is None:
            replica = self._registry.replicas[placed.key] = self._new_replica(placed)
        replica.assigned = placed.registration.directory(self._node_id)

    def _tell(self, placed: Placed) -> None:
        registration = placed.registration
        self._step(
            self._registry.replicas[placed.key],
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
        self._own_life.forget(key)
        replica = self._registry.replicas.pop(key, None)
        if replica is not None:
            self._step(replica, LogFailed())
            self._store.let_go(replica, mark)


def _directory_of(replica: Replica) -> Uuid | None:
    """Where the replica lies, for the controller. None: that is told otherwise, or not known yet."""
    queue = replica.queue
    if queue is None:
        return None
    if not queue.is_usable:
        return None if replica.assigned == queue.directory_id else LOST
    if replica.core.failed:
        return LOST
    if replica.assigned == LOST and replica.log is None:
        return None
    return queue.directory_id
