"""How the leader of a classic group shares partitions among its members: Kafka's assignors, under Kafka's names.

Pure and deterministic: every leader gives the same assignment for the same members, whatever their order. Members with
an instance id come first, each kind in the order of its ids, as Kafka sorts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from quorumlog.client.group.protocol import Subscription, read_kept
from quorumlog.client.group.racks import NOWHERE, IsNear, Racks, nearness
from quorumlog.client.group.sticky import assign_sticky

STICKY = "sticky"
Assignment = dict[str, frozenset[tuple[str, int]]]
"""Partitions by member id."""


class Joined(NamedTuple):
    """A member of the generation that is being made."""

    member_id: str
    subscription: Subscription
    instance_id: str | None = None

    @property
    def rank(self) -> tuple[bool, str]:
        return self.instance_id is None, self.instance_id or self.member_id


class Assignor(Protocol):
    """counts: the number of partitions of each topic that exists. racks: where their replicas are."""

    def __call__(self, members: Sequence[Joined], counts: Mapping[str, int], racks: Racks = NOWHERE) -> Assignment: ...


class Strategy(NamedTuple):
    """cooperative: members keep what they have while they rebalance (KIP-429)."""

    name: str
    assign: Assignor
    cooperative: bool = False


def assign_range(members: Sequence[Joined], counts: Mapping[str, int], racks: Racks = NOWHERE) -> Assignment:
    """Topic by topic, a run of partitions for each subscriber; the first ones get one more.

    Topics with the same subscribers and as many partitions are shared alike, as applications that join them expect.
    Where racks matter, each takes the partitions near it first, those that are near in all of these topics.
    """
    found: dict[str, set[tuple[str, int]]] = {one.member_id: set() for one in members}
    alike: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for topic, readers in _readers(members, counts).items():
        alike.setdefault((tuple(readers), counts[topic]), []).append(topic)
    is_near = _nearness(members, racks)
    for (group, count), topics in alike.items():
        for reader, indexes in _runs(group, count, _near_in_all(is_near, topics)).items():
            found[reader].update((topic, index) for topic in topics for index in indexes)
    return {member: frozenset(partitions) for member, partitions in found.items()}


def _near_in_all(is_near: IsNear | None, topics: Sequence[str]) -> Callable[[str, int], bool] | None:
    if is_near is None:
        return None
    return lambda reader, index: all(is_near(reader, (topic, index)) for topic in topics)


def _runs(readers: Sequence[str], count: int, is_near: Callable[[str, int], bool] | None) -> dict[str, list[int]]:
    """Partition numbers for each: what is near within its share, and then what is left, in their order."""
    each, more = divmod(count, len(readers))  # more: how many may still have one more
    found: dict[str, list[int]] = {reader: [] for reader in readers}
    left = list(range(count))
    for wanted in (None,) if is_near is None else (is_near, None):
        for reader in readers:
            has = len(found[reader])
            room = max(0, each + (more > 0) - has) if has <= each else 0
            taken = [index for index in left if wanted is None or wanted(reader, index)][:room]
            found[reader] += taken
            more -= has <= each < has + len(taken)
            gone = set(taken)
            left = [index for index in left if index not in gone]
    return found


def assign_round_robin(members: Sequence[Joined], counts: Mapping[str, int], racks: Racks = NOWHERE) -> Assignment:
    """Partition by partition, to the next member that subscribes to its topic. Racks do not matter, as in Kafka."""
    order = sorted(members, key=lambda one: one.rank)
    found: dict[str, set[tuple[str, int]]] = {one.member_id: set() for one in members}
    turn = 0
    for topic in sorted(_readers(members, counts)):
        for index in range(counts[topic]):
            while topic not in order[turn % len(order)].subscription.topics:
                turn += 1
            found[order[turn % len(order)].member_id].add((topic, index))
            turn += 1
    return {member: frozenset(partitions) for member, partitions in found.items()}


def assign_eager_sticky(members: Sequence[Joined], counts: Mapping[str, int], racks: Racks = NOWHERE) -> Assignment:
    """As even as can be, and as close to what members had before they gave it up to join."""
    order = [(one.member_id, _as_it_was(one.subscription)) for one in sorted(members, key=lambda one: one.rank)]
    found = assign_sticky(order, counts, _nearness(members, racks))
    return {member: frozenset(partitions) for member, partitions in found.items()}


def _as_it_was(subscription: Subscription) -> Subscription:
    kept = read_kept(subscription.user_data)
    return subscription._replace(owned=kept.partitions, generation=kept.generation, user_data=b"")


def assign_cooperative_sticky(
    members: Sequence[Joined], counts: Mapping[str, int], racks: Racks = NOWHERE
) -> Assignment:
    """As even as can be, and as close to what members have.

    A partition that moves is given to nobody at first: its owner gives it up, which begins the rebalance that hands it
    over. So no two members read it at a time.
    """
    order = [(one.member_id, one.subscription) for one in sorted(members, key=lambda one: one.rank)]
    wanted = assign_sticky(order, counts, _nearness(members, racks))
    owners: dict[tuple[str, int], set[str]] = {}
    for member_id, subscription in order:
        for partition in subscription.owned:
            owners.setdefault(partition, set()).add(member_id)
    return {
        member: frozenset(one for one in partitions if member in owners.get(one, {member}))
        for member, partitions in wanted.items()
    }


def _nearness(members: Sequence[Joined], racks: Racks) -> IsNear | None:
    return nearness([(one.member_id, one.subscription.rack) for one in members], racks)


def _readers(members: Sequence[Joined], counts: Mapping[str, int]) -> dict[str, list[str]]:
    """The subscribers of each topic that exists, in their order."""
    found: dict[str, list[str]] = {}
    for one in sorted(members, key=lambda one: one.rank):
        for topic in dict.fromkeys(one.subscription.topics):
            if counts.get(topic, 0) > 0:
                found.setdefault(topic, []).append(one.member_id)
    return found


STRATEGIES = {
    one.name: one
    for one in (
        Strategy("range", assign_range),
        Strategy("roundrobin", assign_round_robin),
        Strategy(STICKY, assign_eager_sticky),
        Strategy("cooperative-sticky", assign_cooperative_sticky, cooperative=True),
    )
}
