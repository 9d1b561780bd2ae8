"""What an assignor is given, and what it gives.

The `range` assignor: members share each topic in contiguous ranges. Members at the same place of two topics with
equal numbers of partitions get equal indexes, which joins rely on. What was assigned before plays no part.

The `uniform` assignor: numbers of partitions differ by one at most, and members keep as much as that allows.

With unequal subscriptions that is not always possible; then partitions move as long as that makes numbers more equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from quorumlog.ids import Uuid
from quorumlog.slices import Sliced

SLICE = 4_000
"""Members or partitions that are looked at between two steps: about 2 ms."""

Assignment = dict[str, dict[Uuid, list[int]]]
"""member id -> topic id -> indexes"""


class Subject(NamedTuple):
    """A member. topics: ids of those that it subscribes to; members may share one object. owned: its last target."""

    member_id: str
    instance_id: str | None
    topics: frozenset[Uuid]
    owned: Mapping[Uuid, Sequence[int]]


Assignor = Callable[[Sequence[Subject], Mapping[Uuid, int]], Sliced[Assignment]]
"""(members, partitions of each topic that a member subscribes to). Each of these is assigned once, to a subscriber."""


def assign_range(members: Sequence[Subject], partitions: Mapping[Uuid, int]) -> Sliced[Assignment]:
    """Of P partitions of a topic each of its M subscribers gets P div M, the first P mod M one more.

    Members are taken by their instance ids, those without one behind them, by their ids.
    """
    ordered = sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or "", one.member_id))
    found: Assignment = {one.member_id: {} for one in ordered}
    done = 0
    for topic_id, count in partitions.items():
        subscribers = [one.member_id for one in ordered if topic_id in one.topics]
        if not subscribers:
            continue
        quota, more = divmod(count, len(subscribers))
        begin = 0
        for place, member_id in enumerate(subscribers):
            end = begin + quota + (place < more)
            if end > begin:
                found[member_id][topic_id] = list(range(begin, end))
            begin = end
        done += len(ordered) + count
        if done >= SLICE:
            done = 0
            yield
    return found


MAX_PASSES = 16


def assign_uniform(members: Sequence[Subject], partitions: Mapping[Uuid, int]) -> Sliced[Assignment]:
    ordered = sorted(members, key=lambda one: one.member_id)
    if not ordered:
        return {}
    first = ordered[0].topics
    if all(one.topics is first or one.topics == first for one in ordered):
        return (yield from _equal(ordered, partitions))
    return (yield from _Unequal(ordered, partitions).run())


def _still_owned(member: Subject, partitions: Mapping[Uuid, int]) -> Iterator[tuple[Uuid, int]]:
    for topic_id, indexes in member.owned.items():
        if topic_id in member.topics:
            count = partitions.get(topic_id, 0)
            for index in indexes:
                if index < count:
                    yield topic_id, index


def _equal(members: Sequence[Subject], partitions: Mapping[Uuid, int]) -> Sliced[Assignment]:
    """P div M each, P mod M members one more: those first that have one more already."""
    counts = {topic_id: count for topic_id, count in partitions.items() if topic_id in members[0].topics}
    quota, more = divmod(sum(counts.values()), len(members))
    taken: dict[Uuid, bytearray] = {topic_id: bytearray(count) for topic_id, count in counts.items()}
    found: Assignment = {}
    sizes: dict[str, int] = {}
    done = 0
    for member in members:
        mine: dict[Uuid, list[int]] = {}
        limit, size = quota + (more > 0), 0
        for topic_id, index in _still_owned(member, counts):
            if size == limit:
                break
            if not taken[topic_id][index]:
                taken[topic_id][index] = 1
                mine.setdefault(topic_id, []).append(index)
                size += 1
        more -= size > quota
        found[member.member_id], sizes[member.member_id] = mine, size
        done += 1 + size
        if done >= SLICE:
            done = 0
            yield
    rest = ((topic_id, index) for topic_id, marks in taken.items() for index, mark in enumerate(marks) if not mark)
    for member_id, mine in found.items():
        limit = quota
        if sizes[member_id] <= quota and more > 0:
            limit, more = quota + 1, more - 1
        for _ in range(limit - sizes[member_id]):
            topic_id, index = next(rest)
            mine.setdefault(topic_id, []).append(index)
        done += 1 + max(limit - sizes[member_id], 0)
        if done >= SLICE:
            done = 0
            yield
    return found


class _Unequal:
    """Of members with different subscriptions. Topics that are hard to share come first."""

    def __init__(self, members: Sequence[Subject], partitions: Mapping[Uuid, int]) -> None:
        self._members, self._partitions = members, partitions
        self._found: Assignment = {one.member_id: {} for one in members}
        self._load = {one.member_id: 0 for one in members}
        self._subscribers: dict[Uuid, list[str]] = {topic_id: [] for topic_id in partitions}
        self._done = 0

    def _count(self, work: int) -> Sliced[None]:
        self._done += work
        if self._done >= SLICE:
            self._done = 0
            yield

    def run(self) -> Sliced[Assignment]:
        for member in self._members:
            for topic_id in member.topics:
                if topic_id in self._subscribers:
                    self._subscribers[topic_id].append(member.member_id)
            yield from self._count(len(member.topics))
        topics = [topic_id for topic_id, subscribers in self._subscribers.items() if subscribers]
        topics.sort(key=self._ease)
        taken = yield from self._keep()
        for topic_id in topics:
            yield from self._deal(topic_id, taken.get(topic_id, set()))
        for _ in range(MAX_PASSES):
            moved = 0
            for topic_id in topics:
                moved += yield from self._balance(topic_id)
            if not moved:
                break
        return self._found

    def _ease(self, topic_id: Uuid) -> tuple[float, int, Uuid]:
        subscribers = len(self._subscribers[topic_id])
        return -self._partitions[topic_id] / subscribers, subscribers, topic_id

    def _keep(self) -> Sliced[dict[Uuid, set[int]]]:
        taken: dict[Uuid, set[int]] = {}
        for member in self._members:
            for topic_id, index in _still_owned(member, self._partitions):
                of_topic = taken.setdefault(topic_id, set())
                if index not in of_topic:
                    of_topic.add(index)
                    self._found[member.member_id].setdefault(topic_id, []).append(index)
                    self._load[member.member_id] += 1
            yield from self._count(len(member.owned))
        return taken

    def _deal(self, topic_id: Uuid, taken: set[int]) -> Sliced[None]:
        """Each free partition to the least loaded subscriber."""
        heap = [(self._load[one], one) for one in self._subscribers[topic_id]]
        heapify(heap)
        yield from self._count(len(heap))
        for index in range(self._partitions[topic_id]):
            if index in taken:
                continue
            load, member_id = heappop(heap)
            self._found[member_id].setdefault(topic_id, []).append(index)
            self._load[member_id] = load + 1
            heappush(heap, (load + 1, member_id))
            yield from self._count(1)

    def _balance(self, topic_id: Uuid) -> Sliced[int]:
        """Move partitions of this topic while one of its owners has two more than one of its subscribers."""
        subscribers = self._subscribers[topic_id]
        least = [(self._load[one], one) for one in subscribers]
        most = [(-self._load[one], one) for one in subscribers if self._found[one].get(topic_id)]
        heapify(least)
        heapify(most)
        yield from self._count(len(subscribers))
        moved = 0
        while most and -most[0][0] - least[0][0] > 1:
            owner, receiver = heappop(most)[1], heappop(least)[1]
            if owner == receiver or self._load[owner] - self._load[receiver] <= 1:
                break
            self._found[receiver].setdefault(topic_id, []).append(self._found[owner][topic_id].pop())
            self._load[owner] -= 1
            self._load[receiver] += 1
            if self._found[owner][topic_id]:
                heappush(most, (-self._load[owner], owner))
            heappush(least, (self._load[receiver], receiver))
            moved += 1
            yield from self._count(1)
        return moved
