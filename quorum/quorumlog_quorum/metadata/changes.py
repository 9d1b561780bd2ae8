"""The effect of one record on one broker or partition: pure functions from the old registration to the new one."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    DirectoryList,
    NodeList,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from quorumlog_quorum.metadata.registration import (
    UNASSIGNED,
    BrokerRegistration,
    ControllerRegistration,
    PartitionRegistration,
)

T = TypeVar("T")


def registered_broker(record: RegisterBrokerRecord) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=record.broker_id,
        incarnation_id=record.incarnation_id,
        broker_epoch=record.broker_epoch,
        endpoints=record.endpoints,
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_directories=record.log_directories,
        features=record.features,
        cordoned_directories=record.cordoned_directories,
    )


def registered_controller(record: RegisterControllerRecord) -> ControllerRegistration:
    return ControllerRegistration(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=record.endpoints,
        features=record.features,
    )


def changed_broker(old: BrokerRegistration, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
    return replace(
        old,
        fenced=_changed(record.fenced, old.fenced),
        in_controlled_shutdown=_changed(record.in_controlled_shutdown, old.in_controlled_shutdown),
        log_directories=_directories(record.log_directories, old.log_directories),
        cordoned_directories=_directories(record.cordoned_directories, old.cordoned_directories),
    )


def created_partition(record: PartitionRecord) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=record.replicas,
        directories=record.directories or (UNASSIGNED,) * len(record.replicas),
        isr=record.isr,
        leader=record.leader,
        leader_recovery_state=record.leader_recovery_state,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        eligible_leader_replicas=record.eligible_leader_replicas,
        last_known_elr=record.last_known_elr,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
    )


def changed_partition(old: PartitionRegistration, record: PartitionChangeRecord) -> PartitionRegistration:
    """The only place that raises leader and partition epochs (KIP-631)."""
    elected = record.leader is not None
    return PartitionRegistration(
        replicas=_nodes(record.replicas, old.replicas),
        directories=_directories(record.directories, old.directories),
        isr=_nodes(record.isr, old.isr),
        leader=_changed(record.leader, old.leader),
        leader_recovery_state=_changed(record.leader_recovery_state, old.leader_recovery_state),
        leader_epoch=old.leader_epoch + (1 if elected else 0),
        partition_epoch=old.partition_epoch + 1,
        eligible_leader_replicas=_nodes(record.eligible_leader_replicas, old.eligible_leader_replicas),
        last_known_elr=_nodes(record.last_known_elr, old.last_known_elr),
        removing_replicas=_nodes(record.removing_replicas, old.removing_replicas),
        adding_replicas=_nodes(record.adding_replicas, old.adding_replicas),
    )


def _changed(new: T | None, old: T) -> T:
    return old if new is None else new


def _nodes(new: NodeList | None, old: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return old if new is None else new.nodes


def _directories(new: DirectoryList | None, old: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
    return old if new is None else new.directories
