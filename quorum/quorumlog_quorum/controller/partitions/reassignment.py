"""A reassignment of one partition: the merge of target and present replicas, its end, and the way back (KIP-455).

While it is under way the partition has the replicas of its target and, behind them, those that leave. It ends by
itself, with the change that brings the last missing replica into the ISR:

1. Every replica that the target adds is in the ISR.
2. What stays of the ISR is not empty; and where a replica leaves that holds every committed record, or may hold them,
   what stays is not below min.insync.replicas. (Kafka has only the first half: a reassignment may take the last copies
   but one.)

A target may be replaced by another one. What the first one had added and the second one does not want leaves whatever
happens, so it is listed among the replicas that are added and among those that are removed. That is how a cancelled
reassignment finds the replicas that it began with. Their order is that of the target, as in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NodeId
from quorumlog_quorum.metadata.check import effective_min_isr
from quorumlog_quorum.metadata.registration import PartitionRegistration


@dataclass(frozen=True, slots=True)
class Assignment:
    """replicas: all that keep the partition, preferred leader first. adding, removing: some of them."""

    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()

    @property
    def under_way(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[NodeId, ...]:
        return without(self.replicas, self.removing)

    @property
    def before(self) -> tuple[NodeId, ...]:
        """The replicas that the reassignment began with."""
        return without(self.replicas, self.adding)


def without(replicas: tuple[NodeId, ...], left_out: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return tuple(broker_id for broker_id in replicas if broker_id not in left_out)


def present(partition: PartitionRegistration) -> Assignment:
    return Assignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)


def merged(now: Assignment, target: tuple[NodeId, ...]) -> Assignment:
    """On the way to `target`, which may replace that of a reassignment under way."""
    before = now.before
    removing = without(now.replicas, target)
    return Assignment(
        replicas=(*target, *removing),
        adding=(*without(target, before), *without(removing, before)),
        removing=removing,
    )


def cancelled(now: Assignment) -> Assignment:
    return Assignment(now.before)


def settled(now: Assignment, isr: tuple[NodeId, ...], holders: tuple[NodeId, ...], min_isr: int) -> Assignment:
    """The end of the reassignment if it can end; otherwise `now`.

    isr: as it will be, members of `now.replicas`. holders: replicas that hold or may hold every committed record, the
    ISR and others. min_isr: the setting.
    """
    if not now.under_way:
        return now
    stay = without(isr, now.removing)
    if not stay or not set(now.target) - set(now.before) <= set(stay):
        return now
    loses_a_copy = any(broker_id in holders for broker_id in now.removing)
    if loses_a_copy and len(stay) < effective_min_isr(min_isr, now.target):
        return now
    return Assignment(now.target)
