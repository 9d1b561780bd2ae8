"""What an image says of one broker and of one partition."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.metadata.canonical import Value
from quorumlog.ids import NO_NODE, BrokerEpoch, Epoch, NodeId, Uuid
from quorumlog.messages.common import Endpoint

# Reserved directory ids (KRAFT 2.7): the first hundred numbers are nobody's directory.
UNASSIGNED: Uuid = (1).to_bytes(16, "big")  # the broker has not said yet where it keeps the replica
LOST: Uuid = (2).to_bytes(16, "big")  # in a directory that is offline, nobody knows which
RESERVED_DIRECTORIES = 100

RECOVERED = 0  # leader recovery state: the leader was elected from the ISR or ELR
RECOVERING = 1  # elected uncleanly, and has not yet said that it is done


def is_reserved_directory(directory: Uuid) -> bool:
    return int.from_bytes(directory, "big") < RESERVED_DIRECTORIES


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """A broker as the quorum knows it. Source: KIP-631, KIP-841.

    broker_epoch: offset of the record that registered this incarnation.
    log_directories: those that are online.
    """

    broker_id: NodeId
    incarnation_id: Uuid
    broker_epoch: BrokerEpoch
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_directories: tuple[Uuid, ...]

    @property
    def active(self) -> bool:
        """May lead and be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_replicas(self) -> bool:
        """May lead a new partition: it is active and has a disk left."""
        return self.active and bool(self.log_directories)

    def endpoint(self, listener_name: str) -> Endpoint | None:
        """Where the broker's listener of this name can be reached."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener_name), None)

    def is_online(self, directory: Uuid) -> bool:
        """A replica that is recorded in `directory` can be served (KRAFT 2.7)."""
        if directory == UNASSIGNED:
            return bool(self.log_directories)
        return directory in self.log_directories

    def value(self) -> Value:
        """Canonical form, for the state hash."""
        endpoints = tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in self.endpoints)
        return (
            self.incarnation_id,
            self.broker_epoch,
            endpoints,
            self.rack,
            self.fenced,
            self.in_controlled_shutdown,
            self.log_directories,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRegistration:
    """A partition as the quorum knows it. Rules: `check.py`.

    replicas: distinct; the first is preferred as leader. directories: parallel to `replicas`.
    leader: -1 while there is none. leader_epoch: +1 with each election. partition_epoch: +1 with each change.
    eligible_leader_replicas: not in the ISR, but they hold every committed record (KIP-966).
    last_known_elr: the last leader, where ISR and perhaps ELR became empty.
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

    def directory(self, broker_id: NodeId) -> Uuid:
        """Where `broker_id`, which must be a replica, keeps the partition; UNASSIGNED or LOST if not known."""
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
