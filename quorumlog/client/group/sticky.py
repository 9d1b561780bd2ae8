"""A sticky assignment: as even as the subscriptions allow, moving as few partitions as that takes.

1. A partition belongs to the member that says it owns it, in the newest generation; to none if two say so at once.
2. Where all members want the same topics, each keeps at most its share, and what is left fills the others up.
3. Else what is left goes to the member with the fewest, and partitions move as long as that evens out: first those that
   nobody owned, and one also from member to member to member, where no single move helps.
4. Racks decide only where what is left goes: nobody gives up a partition that is far away. Kafka's takes it.

Moves that take one from a member and give one to another with at least two fewer lower the sum of the squares, so the
third rule ends; where there are no such moves, it is the lowest (a minimum-cost flow without a negative cycle). So what
cooperative members hold back for a round finds its place in the next one, and no owner has to give anything up again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from quorumlog.client.group.protocol import NO_GENERATION, Subscription
from quorumlog.client.group.racks import IsNear
from quorumlog.records.format.flexible import INT32

Partition = tuple[str, int]
Member = tuple[str, Subscription]


def assign_sticky(
    members: Sequence[Member], counts: Mapping[str, int], is_near: IsNear | None = None
) -> dict[str, set[Partition]]:
    """members: in their order, which decides between equals."""
    wanted = {name: {topic for topic in one.topics if counts.get(topic, 0) > 0} for name, one in members}
    every = [(topic, index) for topic in sorted(set().union(*wanted.values())) for index in range(counts[topic])]
    kept = _owned(members, wanted, counts)
    if all(topics == wanted[members[0][0]] for topics in wanted.values()):
        return _shared_equally([name for name, _ in members], every, kept, is_near)
    return _evened_out([name for name, _ in members], every, kept, wanted, is_near)


def generation_of(subscription: Subscription) -> int:
    """Members below version 2 say it in the assignor's own bytes."""
    if subscription.generation != NO_GENERATION or len(subscription.user_data) < INT32.size:
        return subscription.generation
    return int(INT32.unpack_from(subscription.user_data)[0])


def _owned(
    members: Sequence[Member], wanted: Mapping[str, set[str]], counts: Mapping[str, int]
) -> dict[str, set[Partition]]:
    claims: dict[Partition, tuple[int, str | None]] = {}
    for name, one in members:
        generation = generation_of(one)
        for partition in sorted(one.owned):
            newest, _ = claims.get(partition, (generation - 1, None))
            if generation > newest:
                claims[partition] = generation, name
            elif generation == newest:
                claims[partition] = generation, None
    kept: dict[str, set[Partition]] = {name: set() for name, _ in members}
    for (topic, index), (_, owner) in claims.items():
        if owner is not None and topic in wanted[owner] and index < counts[topic]:
            kept[owner].add((topic, index))
    return kept


def _shared_equally(
    names: Sequence[str], every: Sequence[Partition], kept: dict[str, set[Partition]], is_near: IsNear | None
) -> dict[str, set[Partition]]:
    each, more = divmod(len(every), len(names))
    found: dict[str, set[Partition]] = {}
    for name in sorted(names, key=lambda one: -len(kept[one])):  # stable: equals stay in their order
        share = each + (1 if more > 0 and len(kept[name]) > each else 0)
        more -= share - each
        found[name] = set(sorted(kept[name])[:share])
    taken = set().union(*found.values())
    left = [one for one in every if one not in taken]
    for share in (each, each + 1):
        for wanted in (None,) if is_near is None else (is_near, None):
            for name in names:
                near = [one for one in left if wanted is None or wanted(name, one)]
                taken = set(near[: max(0, share - len(found[name]))])
                found[name] |= taken
                left = [one for one in left if one not in taken]
    return found


def _evened_out(
    names: Sequence[str],
    every: Sequence[Partition],
    found: dict[str, set[Partition]],
    wanted: Mapping[str, set[str]],
    is_near: IsNear | None,
) -> dict[str, set[Partition]]:
    readers: dict[str, list[str]] = {}
    for name in names:
        for topic in wanted[name]:
            readers.setdefault(topic, []).append(name)
    taken = set().union(*found.values())
    left = [one for one in every if one not in taken]
    for partition in sorted(left, key=lambda one: len(readers[one[0]])):  # those with the fewest readers first
        nearest = [] if is_near is None else [one for one in readers[partition[0]] if is_near(one, partition)]
        _least(readers[partition[0]], found, nearest).add(partition)
    for movable in (frozenset(left), None):
        while moves := _some_moves(names, found, readers, movable):
            for partition, giver, taker in moves:
                found[giver].remove(partition)
                found[taker].add(partition)
    return found


def _some_moves(
    names: Sequence[str],
    found: Mapping[str, set[Partition]],
    readers: Mapping[str, Sequence[str]],
    movable: Collection[Partition] | None,
) -> list[tuple[Partition, str, str]]:
    """They take one from the member with the most that can give one, and give one to a member with at least two fewer.

    As few others as possible are between the two. Each of them gives before it takes, so the moves stand in the order
    in which they can be made. movable: None: every partition. Empty if no moves even out.
    """
    fewest = min(map(len, found.values()))
    for giver in sorted(names, key=lambda one: -len(found[one])):
        if len(found[giver]) < fewest + 2:
            break
        gives: dict[str, tuple[str, Partition]] = {}  # by who takes it
        level, met = [giver], {giver}
        while level:
            reached = []
            for member in level:
                last = {one[0]: one for one in sorted(found[member]) if movable is None or one in movable}
                for topic, partition in last.items():
                    new = [one for one in readers[topic] if one not in met]
                    gives.update(dict.fromkeys(new, (member, partition)))
                    met.update(new)
                    reached += new
            taker = min(reached, key=lambda one: len(found[one]), default=giver)
            if len(found[taker]) + 1 < len(found[giver]):
                return _back_from(taker, gives)
            level = reached
    return []


def _back_from(taker: str, gives: Mapping[str, tuple[str, Partition]]) -> list[tuple[Partition, str, str]]:
    moves = []
    while taker in gives:
        giver, partition = gives[taker]
        moves.append((partition, giver, taker))
        taker = giver
    return moves


def _least(names: Sequence[str], found: Mapping[str, set[Partition]], preferred: Collection[str]) -> set[Partition]:
    return found[min(names, key=lambda one: (len(found[one]), one not in preferred))]
