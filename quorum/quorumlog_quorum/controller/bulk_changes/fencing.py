"""Brokers that come, go, are fenced, unfenced or lose directories: what that means for every partition they hold.

Kafka's invariant (KIP-841): a broker that is fenced or shutting down is in no ISR and leads nothing. So a broker's
partitions are changed *before* its registration when it leaves, and *after* it when it comes: each prefix of the
records is a sound state. (Kafka announces a controlled shutdown first. If the controller dies half-way, no other
one moves the rest of the broker's partitions.)

While a broker's partitions are being changed its new registration is pending (pending.py): no operation in between
gives it a partition again. So one pass over the partitions that it held at the start is enough.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Uuid
from quorumlog.messages.metadata_records import BrokerRegistrationChangeRecord, DirectoryList
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.change_partitions import WishFor, change_partitions, no_wish
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_RECORD, Draft
from quorumlog_quorum.controller.partitions.election import NOTHING, TopicRules, Wish
from quorumlog_quorum.metadata.frame import has_field
from quorumlog_quorum.metadata.partition_index import NO_PARTITIONS, Partitions
from quorumlog_quorum.metadata.registration import UNASSIGNED, BrokerRegistration, PartitionRegistration


def fence_lost_broker(draft: Draft, broker_id: NodeId, broker_epoch: BrokerEpoch) -> Sliced[None]:
    """Fence a broker whose session ended or whose death is proven, unless another process is registered by now."""
    broker = draft.image.brokers.get(broker_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        return
    draft.state.sessions.forget(broker_id)
    if not broker.fenced:
        yield from fence(draft, broker_id)


def fence(draft: Draft, broker_id: NodeId) -> Sliced[None]:
    """Take the broker out of every ISR, then fence it."""
    broker = draft.image.brokers[broker_id]
    yield from _leave(draft, replace(broker, fenced=True))
    draft.add(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=True))


def unfence(draft: Draft, broker_id: NodeId) -> None:
    """Unfence the broker. A separate operation elects leaders; the broker does not wait for it."""
    broker = draft.image.brokers[broker_id]
    draft.add(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=False))
    draft.state.elections_wanted = True


def begin_controlled_shutdown(draft: Draft, broker_id: NodeId) -> Sliced[None]:
    """Move what the broker leads, shrink it out of every ISR, then mark it. It goes on serving until told to stop."""
    broker = draft.image.brokers[broker_id]
    yield from _leave(draft, replace(broker, in_controlled_shutdown=True))
    draft.add(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker.broker_epoch, in_controlled_shutdown=True
        )
    )


def take_directories_offline(draft: Draft, broker_id: NodeId, offline: tuple[Uuid, ...]) -> Sliced[None]:
    """Move the partitions in those directories away, then strike the directories from the registration.

    offline: the broker repeats its whole list with each heartbeat, so only those still registered count.
    """
    broker = draft.image.brokers[broker_id]
    remaining = tuple(directory for directory in broker.log_directories if directory not in offline)
    if remaining == broker.log_directories:
        return

    def wish(partition: PartitionRegistration, rules: TopicRules) -> Wish:
        on_failed_disk = partition.directory(broker_id) in offline
        return Wish(not_eligible=(broker_id,)) if on_failed_disk and not rules.on_disk(broker) else NOTHING

    yield from _leave(draft, replace(broker, log_directories=remaining), wish)
    draft.add(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=broker.broker_epoch,
            log_directories=DirectoryList(directories=remaining),
        )
    )


def note_cordoned(draft: Draft, broker_id: NodeId, directories: tuple[Uuid, ...]) -> None:
    """These directories get no new replicas from now on; what lies there stays (KIP-1066).

    directories: the broker repeats its whole list with each heartbeat, so only a change of it is a record.
    """
    broker = draft.image.brokers[broker_id]
    cordoned = tuple(sorted(set(directories)))
    level = draft.image.metadata_version
    if cordoned == broker.cordoned_directories or not has_field(
        BrokerRegistrationChangeRecord, "cordoned_directories", level
    ):
        return
    draft.add(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=broker.broker_epoch,
            cordoned_directories=DirectoryList(directories=cordoned),
        )
    )


def replace_incarnation(
    draft: Draft, after: BrokerRegistration, directories: tuple[Uuid, ...], clean: bool, damaged: Partitions
) -> Sliced[None]:
    """A new process of a known broker: before it is registered, the old one leaves every ISR.

    directories: what the new process will register. damaged: see `leave_damaged`.
    clean: the old one stopped in order, so its page cache reached the disk. It stays eligible where it still holds
    what it acknowledged: always with durability=synced (see `TopicRules.on_disk`), otherwise after a clean stop.
    A replica whose recorded directory is not there cannot be elected; whether it is empty shows when it is
    assigned to another one.
    """
    broker_id = after.broker_id
    before = draft.image.brokers[broker_id]
    disks_kept = all(directory in after.log_directories for directory in before.log_directories)

    def wish(partition: PartitionRegistration, rules: TopicRules) -> Wish:
        may_be_empty = partition.directory(broker_id) == UNASSIGNED and not disks_kept
        return Wish(
            not_eligible=() if clean or rules.on_disk(before) else (broker_id,),
            emptied=(broker_id,) if may_be_empty else (),
        )

    yield from _leave(draft, after, wish, directories, damaged)


def leave_for_good(draft: Draft, broker_id: NodeId) -> Sliced[None]:
    """The broker is about to be unregistered: it leaves every ISR and every ELR.

    What is left on its disks counts as a last known leader still, except where nothing says in which directory it
    lies: another process may come with this id, and without the data.
    """

    def wish(partition: PartitionRegistration, _rules: TopicRules) -> Wish:
        may_be_empty = partition.directory(broker_id) == UNASSIGNED
        return Wish(not_eligible=(broker_id,), emptied=(broker_id,) if may_be_empty else ())

    yield from _leave(draft, replace(draft.image.brokers[broker_id], fenced=True), wish)


def leave_damaged(draft: Draft, broker_id: NodeId, damaged: Partitions) -> Sliced[None]:
    """Take the broker out of ISR and ELR where its log lacks records that were synced once, and nowhere else.

    It comes back into an ISR as any follower does. As the last known leader it still counts: where nobody is eligible,
    what is left of its log is the best that is known (election.py, rule 3).
    """

    def counts_on_it(partition: PartitionRegistration) -> bool:
        return broker_id in partition.isr or broker_id in partition.eligible_leader_replicas

    def wish(partition: PartitionRegistration, _rules: TopicRules) -> Wish:
        return Wish(isr=tuple(one for one in partition.isr if one != broker_id), not_eligible=(broker_id,))

    yield from change_partitions(draft, damaged, counts_on_it, wish)


def elect_missing_leaders(draft: Draft) -> Sliced[None]:
    """Try to elect a leader for each partition without one; again if something happened meanwhile that may help.

    A smaller min.insync.replicas may also let a reassignment end.
    """
    while draft.state.elections_wanted:
        draft.state.elections_wanted = False
        yield from change_partitions(draft, draft.image.index.leaderless, _is_leaderless)
        yield from change_partitions(draft, draft.image.index.reassigning, _is_copied)


def _leave(
    draft: Draft,
    after: BrokerRegistration,
    wish_for: WishFor = no_wish,
    directories: tuple[Uuid, ...] = (),
    damaged: Partitions = NO_PARTITIONS,
) -> Sliced[None]:
    """Change every partition that has the broker in its ISR or ELR to fit what the broker will be.

    Where that takes many slices, those that it leads come first: clients wait for these, and for no other.
    """

    def counts_on_it(partition: PartitionRegistration) -> bool:
        return (
            after.broker_id in partition.isr
            or after.broker_id in partition.eligible_leader_replicas
            or after.broker_id in partition.last_known_elr
        )

    def is_led(partition: PartitionRegistration) -> bool:
        return partition.leader == after.broker_id

    index = draft.image.index
    held = index.held_by(after.broker_id)
    is_long = index.held_count(after.broker_id) * WORK_OF_A_RECORD > draft.state.config.max_slice_work
    with draft.state.pending.registration(after, directories):
        if is_long and after.broker_id in index.led:
            yield from change_partitions(draft, held, is_led, wish_for)
        yield from change_partitions(draft, held, counts_on_it, wish_for)
        yield from leave_damaged(draft, after.broker_id, damaged)


def _is_copied(partition: PartitionRegistration) -> bool:
    """Whether the reassignment waits for no newcomer."""
    return all(one in partition.isr or one in partition.removing_replicas for one in partition.adding_replicas)


def _is_leaderless(partition: PartitionRegistration) -> bool:
    return partition.leader == NO_NODE
