"""The replicas of this broker: those that the committed metadata gives it, each in one of its log directories.

A shell around `reconciler.py`, which finds what changed, and `broker_incarnation.py`, which decides what this process
may act on. A new, changed or removed replica is stepped with an event; its log is opened, and its leadership taken up,
in the background. Until this process is registered, the logs that its disks hold are opened and nothing else happens to
them: an older image may not know a topic that was created since, so strays are judged by the first image with the
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
from dataclasses import replace
from typing import TypeVar

from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Offset, Uuid
from quorumlog.messages.controller import DirectoryAssignment
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.slices import Sliced
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.partition.events import BrokersChanged, LogFailed, MetadataChanged
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.partition.tail import Tail, TailBudget
from quorumlog_broker.replicas.broker_incarnation import BrokerIncarnation
from quorumlog_broker.replicas.logs_to_open import LogsToOpen
from quorumlog_broker.replicas.reconciler import Placed, changes_of, strays
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step, new_core
from quorumlog_broker.replicas.topic_settings import TopicSettings
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, Image
from quorumlog_quorum.metadata.registration import LOST
from quorumlog_storage.files.names import DELETE, STRAY

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
        logs_to_open: LogsToOpen,
        incarnation: BrokerIncarnation,
        *,
        step: Step,
        open_log: Callable[[Replica], None],
        on_assignments_changed: Callable[[], None],
        promised: Callable[[PartitionKey], Uuid | None] = lambda _: None,
        on_broker_settings: Callable[[], None] = lambda: None,
    ) -> None:
        """open_log: open the log of a replica that has no leader yet. on_assignments_changed: some are pending.

        promised: the directory that a replica is about to move to, which the controller has to know before it does.
        on_broker_settings: those of this broker or of all brokers may have changed, or the cluster has come to know it.
        """
        self._node_id = node_id
        self._registry = registry
        self._store = store
        self._settings = settings
        self._config = config
        self._logs_to_open = logs_to_open
        self._incarnation = incarnation
        self._step = step
        self._open_log = open_log
        self._on_assignments_changed = on_assignments_changed
        self._promised = promised
        self._on_broker_settings = on_broker_settings
        self._tail_budget = TailBudget(config.tail_bytes)
        self._eligible: Mapping[NodeId, BrokerEpoch] = {}
        self._applied = False
        self._applied_end: Offset = 0  # of the last image that was applied whole
        self._deletions_done: Offset = 0
        self._closed = False

    def close(self) -> None:
        """Ignore every later image."""
        self._closed = True

    def apply(self, delta: Delta, image: Image) -> Sliced[None]:
        """A MetadataListener. Old replicas are removed before new ones are made.

        Logs are opened and leaderships taken up in the background. The next image must wait for the last step.
        """
        if self._closed:
            return
        self._registry.image = image
        is_first, self._applied = not self._applied, True
        is_set = any(kind == BROKER_RESOURCE for kind, _ in delta.changed_configs)
        if is_first or is_set or self._node_id in delta.changed_brokers:
            self._on_broker_settings()
        changes = yield from changes_of(delta, image, self._node_id)
        yield from self._paced(changes.reconfigured, self._settings.minimum_raised)
        yield from self._paced((*changes.deleted, *changes.reassigned), lambda key: self._remove(key, DELETE))
        yield from self._paced(changes.vanished, lambda key: self._remove(key, STRAY))
        for topic in (*delta.deleted_topics, *delta.vanished_topics):
            self._registry.traffic.forget(topic.id)
        if changes.eligible is not None:
            yield from self._set_eligible(changes.eligible)
        placed = (*changes.leaders, *changes.followers)
        yield from self._paced(placed, self._host)
        yield from self._act(placed, image, is_first)
        yield from self._paced(changes.reconfigured, self._settings.changed)
        self._applied_whole(placed, image)

    def _applied_whole(self, placed: Sequence[Placed], image: Image) -> None:
        """Every step was done, unless the broker closed meanwhile."""
        if self._closed:
            return
        self._applied_end = image.offset
        if any(self._is_elsewhere(one.key) for one in placed):
            self._on_assignments_changed()

    @property
    def applied_end(self) -> Offset:
        """Exclusive end of the metadata that every replica here has been told of."""
        return self._applied_end

    @property
    def deletions_done_before(self) -> Offset:
        """This broker holds no directory of a topic that was deleted below this offset; 0: not known."""
        if self._incarnation.has_begun and self._store.has_let_go:
            self._deletions_done = self._applied_end
        return self._deletions_done

    def pending_assignments(self) -> list[DirectoryAssignment]:
        """Replicas that lie elsewhere than the metadata says: lost ones first, then by topic id and index."""
        pending = [
            DirectoryAssignment(
                topic_id=key[0], index=key[1], directory_id=directory, keeps_log=key in self._store.found
            )
            for key, replica in self._registry.replicas.items()
            if (directory := self._directory_of(replica)) not in (None, replica.assigned)
        ]
        return sorted(pending, key=lambda one: (one.directory_id != LOST, one.topic_id, one.index))

    def directory_failed(self, queue: DirectoryQueue) -> None:
        """Its replicas are offline from now on."""
        for replica in list(self._registry.replicas.values()):
            if replica.queue is queue:
                self._step(replica, LogFailed())

    def directory_returned(self, queue: DirectoryQueue) -> list[Replica]:
        """Host the replicas that lie in it, or may be made in it, anew: they come back as followers.

        Returns those whose logs it holds. What the metadata does not give to this broker any more is set aside.
        """
        self._judge_strays(self._registry.image)
        returned: list[Replica] = []
        for key, before in list(self._registry.replicas.items()):
            registration = self._registry.image.partition(*key)
            may_return = before.queue is None or before.queue.directory_id == queue.directory_id
            if registration is None or not may_return or self._incarnation.is_held(key):
                continue
            del self._registry.replicas[key]
            if before.log is not None:
                before.log.give_up()  # of a generation that is over
            if registration.leader == self._node_id:  # that leadership ended when the directory failed
                registration = replace(registration, leader=NO_NODE)
            placed = Placed(topic=before.topic, key=key, registration=registration)
            self._host(placed)
            self._tell(placed)
            replica = self._registry.replicas[key]
            if replica.queue is queue and key in self._store.found:
                returned.append(replica)
        self._on_assignments_changed()
        return returned

    def _paced(self, items: Iterable[T], act: Callable[[T], None]) -> Sliced[None]:
        """Act on each item; nothing more once the broker has closed."""
        for number, item in enumerate(items, 1):
            if self._closed:
                return
            act(item)
            if number % self._config.max_slice_work == 0:
                yield

    def _act(self, placed: Sequence[Placed], image: Image, is_first: bool) -> Sliced[None]:
        """Tell the replicas what this life of the broker was given; open the logs of those that it must hold back.

        The logs that the broker waits for are noted before the first of them is opened.
        """
        if self._closed:
            return
        had_begun = self._incarnation.has_begun
        admitted = self._incarnation.admit(placed, image)
        if self._incarnation.has_begun and not had_begun:
            for key in self._judge_strays(image):
                self._host_again(key, image)
        if is_first:
            self._logs_to_open.expect(key for key in self._registry.replicas if self._is_being_opened(key))
        yield from self._paced(admitted, self._tell)
        yield from self._paced(placed, self._open_if_held)

    def _judge_strays(self, image: Image) -> list[PartitionKey]:
        """A stray is deleted if its topic is remembered as deleted. Of any other nothing is known: it is kept.

        Returns the replicas that lay in several directories and are not refused any more. An older image than that of
        this process's registration may name the directory before the last one, so it decides nothing.
        """
        decided = self._store.settle_twice(lambda key: self._named(key, image)) if self._incarnation.has_begun else []
        found = strays(self._store.found, image, self._node_id)
        for topic_id, index in found:
            deleted = image.deleted.get(topic_id)
            if deleted is not None:
                delay_ms = self._settings.of(deleted.name).file_delete_delay_ms
                self._store.delete_found((topic_id, index), delay_ms / 1000)
        self._store.set_strays_aside([key for key in found if key[0] not in image.deleted])
        for key in strays(self._store.futures.by_key, image, self._node_id):
            self._store.futures.discard(self._store.futures.by_key.pop(key), DELETE)
        return [key for key in decided if key in self._store.found]

    def _named(self, key: PartitionKey, image: Image) -> Uuid | None:
        """The directory that the metadata names for a replica of this broker."""
        registration = image.partition(*key)
        is_ours = registration is not None and self._node_id in registration.replicas
        return registration.directory(self._node_id) if registration is not None and is_ours else None

    def _host_again(self, key: PartitionKey, image: Image) -> None:
        """It was refused, and so it has no directory yet."""
        before, registration = self._registry.replicas.get(key), image.partition(*key)
        if before is not None and registration is not None:
            self._host(Placed(topic=before.topic, key=key, registration=registration))

    def _open_if_held(self, placed: Placed) -> None:
        if self._incarnation.is_held(placed.key) and placed.key in self._store.found:
            self._open_log(self._registry.replicas[placed.key])

    def _is_being_opened(self, key: PartitionKey) -> bool:
        """A log that is not there yet is made only after the registration."""
        is_wanted = not self._incarnation.is_held(key) or key in self._store.found
        return is_wanted and self._registry.replicas[key].can_be_opened

    def _is_elsewhere(self, key: PartitionKey) -> bool:
        replica = self._registry.replicas[key]
        return self._directory_of(replica) not in (None, replica.assigned)

    def _directory_of(self, replica: Replica) -> Uuid | None:
        if replica.key in self._store.refused:
            return LOST if self._incarnation.has_begun else None  # the image of the registration may decide it
        found = _directory_of(replica)
        promised = self._promised(replica.key)
        return found if promised is None or found in (None, LOST) else promised

    def _set_eligible(self, eligible: Mapping[NodeId, BrokerEpoch]) -> Sliced[None]:
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
                elr=registration.eligible_leader_replicas,
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
            queue=self._store.place(placed.key, assigned, placed.topic),
            assigned=assigned,
            traffic=self._registry.traffic.of(placed.key),
        )
        self._logs_to_open.replica_made()
        self._step(replica, BrokersChanged(self._eligible))
        if replica.queue is None:
            self._step(replica, LogFailed())
        return replica

    def _remove(self, key: PartitionKey, mark: str) -> None:
        self._incarnation.forget(key)
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
    if not queue.directory.life.is_online:
        return None
    if replica.assigned == LOST and replica.log is None:
        return None
    return queue.directory_id
