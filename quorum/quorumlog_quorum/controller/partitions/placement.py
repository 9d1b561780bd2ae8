"""On which brokers the replicas of a new topic are placed: striped over racks and brokers.

Partition p begins at rack p (modulo racks with an active broker) and takes one broker of each following rack in turn;
inside a rack the ring of brokers turns by one for each round over the racks, and is shuffled again after each full
turn. So leaders and replicas are spread evenly over equal racks, also while a rack is down, and the followers of one
leader differ. Fenced brokers are taken only where the active ones are too few, and never first: the first replica is
the leader. Brokers whose directories are all cordoned are never taken. Sources: KIP-36, KIP-1066.

A new partition: what its replicas must be, and its first record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.metadata_records import PartitionRecord
from quorumlog_quorum.controller.partitions.election import Brokers, default_directory
from quorumlog_quorum.metadata.registration import BrokerRegistration

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True)
class _Rack:
    """Rings of one rack's brokers, in the order of this turn."""

    active: list[NodeId]
    fenced: list[NodeId]

    def shuffle(self, rng: Random) -> None:
        rng.shuffle(self.active)
        rng.shuffle(self.fenced)

    def pick(self, turn: int, taken: list[NodeId], fenced_too: bool) -> NodeId | None:
        """The next broker of the ring at `turn` that is not taken; None: there is none."""
        for ring in (self.active, self.fenced) if fenced_too else (self.active,):
            for step in range(len(ring)):
                broker_id = ring[(turn + step) % len(ring)]
                if broker_id not in taken:
                    return broker_id
        return None


def in_order(brokers: Brokers) -> list[BrokerRegistration]:
    """By id."""
    return [brokers[broker_id] for broker_id in sorted(brokers)]


def place_replicas(
    brokers: Iterable[BrokerRegistration], partitions: int, replication_factor: int, rng: Random
) -> Iterator[tuple[NodeId, ...]]:
    """Replicas of each partition, preferred leader first. Raises ApiError(INVALID_REPLICATION_FACTOR) at once.

    brokers: every registered one, in the order of ids; those that stop, or have no disk left, count as fenced.
    """
    registered = list(brokers)
    usable = [broker for broker in registered if not broker.is_cordoned]
    _check(usable, len(registered), replication_factor)
    racks = _racks(usable)
    rng.shuffle(racks)
    return _place_all(racks, partitions, replication_factor, rng.randrange(1 << 16), rng)


def _place_all(
    racks: list[_Rack], partitions: int, replication_factor: int, first_turn: int, rng: Random
) -> Iterator[tuple[NodeId, ...]]:
    starts = [index for index, rack in enumerate(racks) if rack.active]
    for partition in range(partitions):
        turn, which = divmod(partition, len(starts))
        if which == 0:
            _shuffle_after_full_turn(racks, turn, rng)
        yield _place(racks, starts[which], first_turn + turn, replication_factor)


def _check(brokers: list[BrokerRegistration], registered: int, replication_factor: int) -> None:
    """brokers: of the registered ones, those that are not cordoned."""
    if replication_factor > len(brokers):
        cordoned = registered - len(brokers)
        found = f"only {registered} brokers are registered"
        if cordoned:
            found += f", {cordoned} of them with cordoned log directories only"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {replication_factor}, but {found}")
    if not any(broker.takes_replicas for broker in brokers):
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "all brokers are fenced or shutting down")


def _racks(brokers: list[BrokerRegistration]) -> list[_Rack]:
    """In the order of names. Brokers without a rack form one of their own."""
    by_name: dict[str, _Rack] = {}
    for broker in brokers:
        rack = by_name.setdefault(broker.rack or "", _Rack([], []))
        (rack.active if broker.takes_replicas else rack.fenced).append(broker.broker_id)
    return [by_name[name] for name in sorted(by_name)]


def _shuffle_after_full_turn(racks: list[_Rack], turn: int, rng: Random) -> None:
    for rack in racks:
        if turn % max(len(rack.active), 1) == 0:
            rack.shuffle(rng)


def _place(racks: list[_Rack], start: int, turn: int, replication_factor: int) -> tuple[NodeId, ...]:
    """One broker of each rack in turn, round after round; fenced brokers when no active one is left."""
    taken: list[NodeId] = []
    for fenced_too in (False, True):
        idle = 0  # racks in a row without a broker to take
        step = len(taken)
        while len(taken) < replication_factor and idle < len(racks):
            broker_id = racks[(start + step) % len(racks)].pick(turn, taken, fenced_too)
            step += 1
            idle = idle + 1 if broker_id is None else 0
            if broker_id is not None:
                taken.append(broker_id)
    assert len(taken) == replication_factor, "the number of brokers was checked"
    return tuple(taken)


def check_replicas(brokers: Brokers, index: int, replicas: tuple[NodeId, ...]) -> None:
    """Check the replicas that a request assigns to a partition. Raises ApiError(INVALID_REPLICA_ASSIGNMENT)."""
    if not replicas or len(set(replicas)) < len(replicas):
        raise bad_assignment(f"partition {index} needs one or more different brokers, has {list(replicas)}")
    for broker_id in replicas:
        if broker_id not in brokers:
            raise bad_assignment(f"partition {index}: broker {broker_id} is not registered")
        if brokers[broker_id].is_cordoned:
            raise bad_assignment(f"partition {index}: broker {broker_id} has only cordoned log directories")
    if not any(brokers[broker_id].takes_replicas for broker_id in replicas):
        raise bad_assignment(f"partition {index}: all of {list(replicas)} are fenced or shutting down")


def bad_assignment(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def partition_record(brokers: Brokers, topic_id: Uuid, index: int, replicas: tuple[NodeId, ...]) -> PartitionRecord:
    """The ISR is the replicas that are active, in their order; the first of them leads. At least one must be active."""
    isr = tuple(broker_id for broker_id in replicas if brokers[broker_id].takes_replicas)
    return PartitionRecord(
        partition=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        directories=tuple(default_directory(brokers[broker_id]) for broker_id in replicas),
    )
