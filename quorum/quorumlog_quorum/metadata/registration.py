"""The entries of an image: one broker's registration, one partition's registration."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.ids import NO_NODE, RESERVED_UUIDS, BrokerEpoch, Epoch, NodeId, Uuid
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog_quorum.metadata.canonical import Value

# Reserved directory ids (KIP-858): no directory has one of the first hundred numbers as its id.
UNASSIGNED: Uuid = (1).to_bytes(16, "big")  # the broker has not yet reported where it keeps the replica
LOST: Uuid = (2).to_bytes(16, "big")  # in a directory that is offline; which one is not known

RECOVERED = 0  # leader recovery state: the leader was elected from the ISR or ELR
RECOVERING = 1  # the leader was elected uncleanly and has not finished its recovery
IMPORTING = 2  # no leader and no ISR: its replicas take the copy of a foreign log (ours; Kafka has no such state)
RECOVERY_STATES = {RECOVERED: 1, RECOVERING: 1, IMPORTING: 4}  # and the level of metadata.version that brought each


def is_reserved_directory(directory: Uuid) -> bool:
    return int.from_bytes(directory, "big") < RESERVED_UUIDS


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """A broker as the quorum knows it. Source: KIP-631, KIP-841.

    broker_epoch: offset of the record that registered this incarnation.
    log_directories: those that are online.
    features: the ranges of levels that the broker's software supports, by name; empty for a broker that was registered
        at metadata.version 1, where the record does not carry them.
    cordoned_directories: those that get no new replicas, ascending; some may be offline. Empty below CORDON_LEVEL.
    """

    broker_id: NodeId
    incarnation_id: Uuid
    broker_epoch: BrokerEpoch
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_directories: tuple[Uuid, ...]
    features: tuple[FeatureRange, ...] = ()
    cordoned_directories: tuple[Uuid, ...] = ()

    @property
    def active(self) -> bool:
        """Whether the broker may lead partitions and be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_replicas(self) -> bool:
        """Whether new partitions may be placed on the broker: it is active and has a directory that is online."""
        return self.active and bool(self.log_directories)

    @property
    def is_cordoned(self) -> bool:
        """Whether the broker gets no new replicas: each directory that is online is cordoned (KIP-1066)."""
        return bool(self.log_directories) and set(self.log_directories) <= set(self.cordoned_directories)

    def endpoint(self, listener_name: str) -> Endpoint | None:
        """The address of the broker's listener of this name; None if it has no such listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener_name), None)

    def is_online(self, directory: Uuid) -> bool:
        """Whether the broker can serve a replica whose recorded directory is `directory` (KIP-858)."""
        if directory == UNASSIGNED:
            return bool(self.log_directories)
        return directory in self.log_directories

    def value(self) -> Value:
        """Canonical form, for the state hash. Without what later levels brought it is the form before them."""
        endpoints = tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in self.endpoints)
        features = tuple((feature.name, feature.min_level, feature.max_level) for feature in self.features)
        base: tuple[Value, ...] = (
            self.incarnation_id,
            self.broker_epoch,
            endpoints,
            self.rack,
            self.fenced,
            self.in_controlled_shutdown,
            self.log_directories,
        )
        if self.cordoned_directories:
            return (*base, features, self.cordoned_directories)
        return (*base, features) if features else base


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistration:
    """A process of a controller, with the ranges of levels that its software supports, by name. Source: KIP-919."""

    controller_id: NodeId
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]

    def value(self) -> Value:
        """Canonical form, for the state hash."""
        endpoints = tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in self.endpoints)
        features = tuple((feature.name, feature.min_level, feature.max_level) for feature in self.features)
        return (self.incarnation_id, endpoints, features)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRegistration:
    """A partition as the quorum knows it. Invariants: `check.py`.

    replicas: distinct; the first is the preferred leader. directories: parallel to `replicas`.
    leader: -1 while there is none. leader_epoch: grows by 1 with each election, partition_epoch with each change.
    eligible_leader_replicas: replicas outside the ISR that hold every committed record (KIP-966).
    last_known_elr: the last leader, if the ISR became empty.
    known_hash: of this partition as an entry of an image, once `image.known_partition_hash` has computed it.
    """

    replicas: tuple[NodeId, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId = NO_NODE
    leader_recovery_state: int = RECOVERED
    leader_epoch: Epoch = 0
    partition_epoch: Epoch = 0
    eligible_leader_replicas: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    removing_replicas: tuple[NodeId, ...] = ()
    adding_replicas: tuple[NodeId, ...] = ()
    known_hash: int | None = field(default=None, init=False, compare=False, repr=False)

    def directory(self, broker_id: NodeId) -> Uuid:
        """The directory in which a replica is kept; UNASSIGNED or LOST if it is not known. `broker_id` is a replica."""
        return self.directories[self.replicas.index(broker_id)]

    def numbers(self) -> tuple[int, ...]:
        """Everything but the directories, for the state hash; each list after its length."""
        return (
            len(self.replicas),
            *self.replicas,
            len(self.isr),
            *self.isr,
            self.leader,
            self.leader_recovery_state,
            self.leader_epoch,
            self.partition_epoch,
            len(self.eligible_leader_replicas),
            *self.eligible_leader_replicas,
            len(self.last_known_elr),
            *self.last_known_elr,
            len(self.removing_replicas),
            *self.removing_replicas,
            len(self.adding_replicas),
            *self.adding_replicas,
        )
