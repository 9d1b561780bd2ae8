"""How one partition changes when its brokers, its ISR or its directories do: ISR, ELR, leader, epochs.

Every change of a partition goes through `partition_change`, whatever its cause, so that the rules are written once:

1. A replica leaves the ISR when its broker is fenced or shutting down, or when its directory is offline.
2. A replica that leaves an ISR which is now below min.insync.replicas becomes eligible (ELR): the high watermark cannot
   move past what it holds (KIP-966). An ISR that is large enough needs no ELR.
3. The leader stays if it is valid. Otherwise the first valid replica leads, in the order of `replicas`; otherwise the
   last known leader; otherwise, only where the topic allows it, any replica that is alive. A replica is valid if it is
   alive and in the ISR, or, where the ISR is empty, in the ELR. With `unclean.recovery.strategy=Balanced` the last
   known leader is not trusted: where ISR and ELR are empty, the replicas are asked, and the longest log leads
   (`unclean_recovery.py`).
4. A new leader means a new leader epoch. A smaller ISR alone does not (KAFKA-15021).
5. Where a preferred leader is asked for, the first of `replicas` leads if it is valid.
6. A reassignment ends with the change that makes its end possible (`assignment.py`). A replica that goes means a new
   leader epoch, even for the same leader: so it does not take a fetch of the replica that is gone for one of a member.
7. A partition that takes an import has no leader before the import is finished (`imports.py`), whatever the topic
   allows: its replicas hold some of the records.

Source: KIP-455, KIP-460, KIP-631, KIP-966. A `RECOVERING` leader was elected uncleanly, by one of the last
two clauses of rule 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import NO_NODE, NodeId, Offset, Uuid
from quorumlog.messages.metadata_records import DirectoryList, NodeList, PartitionChangeRecord
from quorumlog_quorum.controller.partitions.reassignment import Assignment, present, settled, without
from quorumlog_quorum.metadata.check import effective_min_isr
from quorumlog_quorum.metadata.registration import (
    IMPORTING,
    RECOVERING,
    UNASSIGNED,
    BrokerRegistration,
    PartitionRegistration,
)

Brokers = Mapping[NodeId, BrokerRegistration]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRules:
    """What a topic's settings say of elections."""

    min_insync_replicas: int
    unclean: bool  # unclean.leader.election.enable
    balanced: bool  # unclean.recovery.strategy=Balanced
    synced: bool  # an acknowledged record is on disk (durability=synced)
    synced_from: Offset = 0  # only where the broker epoch is this or higher; 0: everywhere

    def on_disk(self, broker: BrokerRegistration) -> bool:
        """Whether everything that this process has acknowledged is on its disk."""
        return self.synced and broker.broker_epoch >= self.synced_from

    @property
    def eligible_holds_all(self) -> bool:
        """Whether ISR and ELR name every replica that holds all: no unclean end has ever taken one out of the ELR."""
        return self.synced and not self.synced_from


def topic_rules(settings: Mapping[str, str], synced_from: Offset = 0) -> TopicRules:
    """settings: of the topic, over the cluster-wide ones."""
    config = TopicConfig.from_map(settings)
    return TopicRules(
        min_insync_replicas=config.min_insync_replicas,
        unclean=config.unclean_leader_election_enable,
        balanced=config.unclean_recovery_strategy == "Balanced",
        synced=config.synced,
        synced_from=synced_from,
    )


class Election(Enum):
    """Who may lead. Every one of them leaves a valid leader where it is, unless the preferred one is valid, too."""

    USUAL = "as the rules say"
    PREFERRED = "the first replica, if it is valid"
    UNCLEAN = "any replica that is alive, where no replica holds every committed record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an operation asks for, beside the rules. None: no change.

    not_eligible: replicas that may lack committed records; they leave the ELR.
    emptied: replicas that certainly lost their data; they are not even a last known leader.
    directories: parallel to the replicas before the change. assignment: of a reassignment that begins or is cancelled.
    longest: the replica whose log was found to be the longest; NO_NODE: the replicas were not asked.
    """

    assignment: Assignment | None = None
    election: Election = Election.USUAL
    isr: tuple[NodeId, ...] | None = None
    directories: tuple[Uuid, ...] | None = None
    leader_recovery_state: int | None = None
    not_eligible: tuple[NodeId, ...] = ()
    emptied: tuple[NodeId, ...] = ()
    longest: NodeId = NO_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The result of an election: the leader, and its ISR and ELR."""

    leader: NodeId
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a partition is kept after the change. alive: the replicas that could serve. isr: those of it that are."""

    assignment: Assignment
    directories: tuple[Uuid, ...]
    alive: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]


NOTHING = Wish()
_NO_CHANGES = (None,) * 9


def partition_change(
    topic_id: Uuid,
    index: int,
    partition: PartitionRegistration,
    brokers: Brokers,
    rules: TopicRules,
    wish: Wish = NOTHING,
) -> PartitionChangeRecord | None:
    """The record that brings `partition` in line with `brokers` and `wish`; None: nothing changes.

    brokers: as they will be once the operation and all others under way have ended (`Draft.brokers`).
    """
    place = _place(partition, brokers, rules, wish)
    replicas, isr, alive = place.assignment.replicas, place.isr, place.alive
    min_isr = effective_min_isr(rules.min_insync_replicas, replicas)
    elr = _eligible(partition, replicas, isr, (*wish.not_eligible, *wish.emptied))
    known = _last_known_leader(partition, replicas, isr, wish.emptied)
    if partition.leader_recovery_state == IMPORTING and wish.leader_recovery_state is None:
        choice = _Choice(leader=NO_NODE, isr=(), elr=())
    else:
        preferred = replicas[0] if wish.election is Election.PREFERRED else NO_NODE
        leads_again = () if is_asked(rules, wish.election) else known
        choice = _elect(partition, isr, elr, leads_again, alive, _last_resort(place, elr, rules, wish), preferred)
    elr = () if len(choice.isr) >= min_isr else choice.elr
    state = RECOVERING if choice.unclean else wish.leader_recovery_state
    replica_goes = not set(partition.replicas) <= set(replicas)
    changes = (
        _nodes_if_changed(choice.isr, partition.isr),
        choice.leader if choice.leader != partition.leader or choice.unclean or replica_goes else None,
        # An unclean election says so in its record, also where the one before it had not been recovered from.
        None if state == partition.leader_recovery_state and not choice.unclean else state,
        _nodes_if_changed(elr, partition.eligible_leader_replicas),
        _nodes_if_changed(() if choice.isr else known, partition.last_known_elr),
        None if place.directories == partition.directories else DirectoryList(directories=place.directories),
        _nodes_if_changed(replicas, partition.replicas),
        _nodes_if_changed(place.assignment.adding, partition.adding_replicas),
        _nodes_if_changed(place.assignment.removing, partition.removing_replicas),
    )
    if changes == _NO_CHANGES:
        return None
    isr_list, leader, new_state, elr_list, known_list, directory_list, replica_list, adding, removing = changes
    return PartitionChangeRecord(
        partition=index,
        topic_id=topic_id,
        isr=isr_list,
        leader=leader,
        leader_recovery_state=new_state,
        eligible_leader_replicas=elr_list,
        last_known_elr=known_list,
        directories=directory_list,
        replicas=replica_list,
        adding_replicas=adding,
        removing_replicas=removing,
    )


def _place(partition: PartitionRegistration, brokers: Brokers, rules: TopicRules, wish: Wish) -> _Place:
    assignment = present(partition) if wish.assignment is None else wish.assignment
    place = _at(assignment, partition, brokers, wish)
    if assignment.under_way:
        holders = (*place.isr, *copies(partition, assignment, rules))
        end = settled(assignment, place.isr, holders, rules.min_insync_replicas)
        if end is not assignment:
            return _at(end, partition, brokers, wish)
    return place


def copies(partition: PartitionRegistration, assignment: Assignment, rules: TopicRules) -> tuple[NodeId, ...]:
    """Replicas that hold every committed record, as far as a reassignment has to mind.

    Without durability=synced a broker that ends uncleanly leaves the ELR, because it may have lost records with its
    machine's power; so does one whose process is older than the raise to synced. Mostly its process alone has ended,
    and its copy is whole. Nothing says which of the others were in the ISR before, newcomers among them: all count.
    """
    held = (*partition.isr, *partition.eligible_leader_replicas)
    return held if rules.eligible_holds_all else (*held, *assignment.replicas)


def _at(assignment: Assignment, partition: PartitionRegistration, brokers: Brokers, wish: Wish) -> _Place:
    directories = partition.directories if wish.directories is None else wish.directories
    if assignment.replicas != partition.replicas:
        of_replica = dict(zip(partition.replicas, directories, strict=True))
        directories = tuple(
            of_replica[broker_id] if broker_id in of_replica else default_directory(brokers.get(broker_id))
            for broker_id in assignment.replicas
        )
    alive = alive_replicas(assignment.replicas, directories, brokers)
    wanted = partition.isr if wish.isr is None else wish.isr
    isr = tuple(broker_id for broker_id in wanted if broker_id in alive)
    return _Place(assignment, directories, alive, isr)


def default_directory(broker: BrokerRegistration | None) -> Uuid:
    """The broker's only directory. If it has several, it chooses one and reports it later (KIP-858)."""
    return broker.log_directories[0] if broker is not None and len(broker.log_directories) == 1 else UNASSIGNED


def is_asked(rules: TopicRules, election: Election = Election.USUAL) -> bool:
    """Whether replicas are asked for the ends of their logs, where ISR and ELR are empty.

    An operator's election does not wait for that, nor does a topic that allows any leader at once.
    """
    return rules.balanced and not rules.unclean and election is not Election.UNCLEAN


def awaits_recovery(partition: PartitionRegistration, rules: TopicRules) -> bool:
    """Whether only an unclean election of the longest log can give it a leader."""
    held = partition.isr or partition.eligible_leader_replicas
    importing = partition.leader_recovery_state == IMPORTING
    return partition.leader == NO_NODE and not held and not importing and is_asked(rules)


def _last_resort(place: _Place, elr: tuple[NodeId, ...], rules: TopicRules, wish: Wish) -> tuple[NodeId, ...]:
    """Who may lead uncleanly: of the replicas that are alive those that came last hold least, so they come last."""
    if wish.longest in place.alive and not elr and is_asked(rules, wish.election):
        return (wish.longest,)
    if not rules.unclean and (elr or wish.election is not Election.UNCLEAN):
        return ()
    adding = place.assignment.adding
    return (*without(place.alive, adding), *(broker_id for broker_id in place.alive if broker_id in adding))


def alive_replicas(replicas: tuple[NodeId, ...], directories: tuple[Uuid, ...], brokers: Brokers) -> tuple[NodeId, ...]:
    """Replicas that could serve: their broker is active and their directory online."""
    alive = []
    for broker_id, directory in zip(replicas, directories, strict=True):
        broker = brokers.get(broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            continue
        if directory in broker.log_directories or broker.is_online(directory):
            alive.append(broker_id)
    return tuple(alive)


def _eligible(
    partition: PartitionRegistration,
    replicas: tuple[NodeId, ...],
    isr: tuple[NodeId, ...],
    not_eligible: tuple[NodeId, ...],
) -> tuple[NodeId, ...]:
    """(old ISR and old ELR) less the new ISR and `not_eligible`, in the order of replicas."""
    held = (*partition.isr, *partition.eligible_leader_replicas)
    return tuple(b for b in replicas if b in held and b not in isr and b not in not_eligible)


def _last_known_leader(
    partition: PartitionRegistration,
    replicas: tuple[NodeId, ...],
    isr: tuple[NodeId, ...],
    emptied: tuple[NodeId, ...],
) -> tuple[NodeId, ...]:
    """The leader at the time the ISR became empty, remembered for as long as it is."""
    if isr:
        return ()
    known = partition.last_known_elr if partition.leader == NO_NODE else (partition.leader,)
    return tuple(broker_id for broker_id in known if broker_id in replicas and broker_id not in emptied)


def _elect(
    partition: PartitionRegistration,
    isr: tuple[NodeId, ...],
    elr: tuple[NodeId, ...],
    known: tuple[NodeId, ...],
    alive: tuple[NodeId, ...],
    last_resort: tuple[NodeId, ...],
    preferred: NodeId,
) -> _Choice:
    """Rules 3 and 5. isr: only replicas that are alive. preferred: NO_NODE if nobody asks for it."""
    valid = [broker_id for broker_id in alive if broker_id in (isr or elr)]
    if preferred in valid:
        return _lead(preferred, isr, elr)
    if partition.leader in valid:
        return _lead(partition.leader, isr, elr)
    if valid:
        return _lead(valid[0], isr, elr)
    if not elr and known and known[0] in alive:
        return _Choice(leader=known[0], isr=known, elr=(), unclean=True)
    if last_resort:
        return _Choice(leader=last_resort[0], isr=last_resort[:1], elr=(), unclean=True)
    return _Choice(leader=NO_NODE, isr=isr, elr=elr)


def _lead(leader: NodeId, isr: tuple[NodeId, ...], elr: tuple[NodeId, ...]) -> _Choice:
    """A clean election. One from the ELR makes an ISR of its own."""
    return _Choice(leader=leader, isr=isr or (leader,), elr=tuple(b for b in elr if b != leader))


def _nodes_if_changed(new: tuple[NodeId, ...], old: tuple[NodeId, ...]) -> NodeList | None:
    return None if new == old else NodeList(nodes=new)
