"""The past of a watched cluster: the newest sample whole, and of older ones what rates and courses need.

Bounded twice: by points, and by the offsets that all points hold together (CELLS), so that a cluster of many partitions
has a shorter past instead of a larger one. The oldest point goes first.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from quorumlog.ids import Offset, TopicPartition
from quorumlog.watch.changes import Change, changes
from quorumlog.watch.sample import UNKNOWN, Group, GroupOffset, Sample, Topic

POINTS = 720  # an hour, at one in five seconds
CELLS = 4_000_000  # offsets of 8 bytes each
CHANGES = 1_000
RATE_MS = 15_000  # a rate is taken over at least so much, where the past has it
TREND_MS = 60_000


@dataclass(frozen=True, slots=True)
class Ends:
    """Of a topic's partitions, by index: the end offset; and the bytes of all together. UNKNOWN where not told."""

    topic_id: bytes
    ends: array[int]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Point:
    """groups: of each, what it has committed in all, and its lag."""

    at_ms: int
    wall_ms: int
    topics: Mapping[str, Ends]
    groups: Mapping[str, tuple[int, int]]
    cells: int = field(default=0)


@dataclass(frozen=True, slots=True)
class Rate:
    """records, bytes: a second; None: not known. Offsets count as records: a marker of a transaction is one, too.

    bytes: how fast the leaders' replicas grow; None while retention or compaction makes one smaller.
    """

    records: float | None
    bytes: float | None


NO_RATE = Rate(None, None)


class Past:
    def __init__(self, points: int = POINTS, cells: int = CELLS, max_changes: int = CHANGES) -> None:
        assert points >= 2 and cells > 0, f"{points} points of {cells} cells keep no past"
        self._max_points, self._max_cells = points, cells
        self._points: deque[Point] = deque()
        self._cells = 0
        self._changes: deque[Change] = deque(maxlen=max_changes)
        self._newest: Sample | None = None

    def add(self, sample: Sample) -> None:
        """Samples come in the order of `at_ms`."""
        assert self._newest is None or sample.at_ms >= self._newest.at_ms, "a sample from the past"
        if self._newest is not None:
            self._changes.extend(changes(self._newest, sample))
        self._newest = sample
        point = _point(sample)
        self._points.append(point)
        self._cells += point.cells
        while len(self._points) > self._max_points or (self._cells > self._max_cells and len(self._points) > 2):
            self._cells -= self._points.popleft().cells

    @property
    def newest(self) -> Sample | None:
        return self._newest

    @property
    def since_wall_ms(self) -> int:
        """When the oldest point was taken, ms since 1970; UNKNOWN before the first."""
        return self._points[0].wall_ms if self._points else UNKNOWN

    def __len__(self) -> int:
        return len(self._points)

    @property
    def cells(self) -> int:
        return self._cells

    @property
    def changes(self) -> list[Change]:
        """What differed between two samples, oldest first."""
        return list(self._changes)

    def topic_rate(self, name: str) -> Rate:
        newest, older = self._two(RATE_MS)
        if newest is None or older is None:
            return NO_RATE
        return _rate(newest, older, name)

    def topic_rates(self) -> dict[str, Rate]:
        newest, older = self._two(RATE_MS)
        if newest is None or older is None:
            return {}
        return {name: _rate(newest, older, name) for name in newest.topics}

    def topic_course(self, name: str) -> list[tuple[int, float]]:
        """Records a second between each two points: when (wall ms of the later one), how many."""
        found = []
        for older, newer in pairwise(self._points):
            rate = _rate(newer, older, name).records
            if rate is not None:
                found.append((newer.wall_ms, rate))
        return found

    def group_course(self, group_id: str) -> list[tuple[int, int]]:
        """How far the group was behind: when (wall ms), its lag. A point that has not seen it is left out."""
        return [(one.wall_ms, one.groups[group_id][1]) for one in self._points if group_id in one.groups]

    def lag_trend(self, group_id: str) -> float | None:
        """Records a second by which its lag grows (above 0) or shrinks, over the last TREND_MS; None: unknown."""
        seen = [one for one in self._points if group_id in one.groups]
        if not seen or seen[-1] is not self._points[-1]:
            return None
        newest = seen[-1]
        older = next((one for one in reversed(seen) if newest.at_ms - one.at_ms >= TREND_MS), seen[0])
        grown = newest.groups[group_id][1] - older.groups[group_id][1]
        return grown * 1000 / (newest.at_ms - older.at_ms) if older.at_ms < newest.at_ms else None

    def behind_ms(self, group: Group) -> int | None:
        """How long ago the oldest record that the group has not committed was at the end of its partition.

        0: it has committed all. None: nobody knows. At least so long, if the past does not go back that far
        (`is_older_than_past`).
        """
        worst: int | None = 0
        for one in group.counted:
            if one.lag > 0:
                since = self._age(one)
                worst = None if since is None or worst is None else max(worst, since)
            elif one.distance == UNKNOWN and one.committed >= 0 and not one.is_of_former_topic:
                worst = None
        return worst

    def is_older_than_past(self, group: Group) -> bool:
        oldest = self._points[0] if self._points else None
        return oldest is not None and any(
            one.lag > 0 and one.since_ms is None and _end(oldest, one.key) > one.committed for one in group.counted
        )

    def _age(self, one: GroupOffset) -> int | None:
        """ms from the first record that is to be read to the newest point: as told, else as seen."""
        if one.since_ms is None or not self._points:
            return self._reached_at(one.key, one.committed)
        return max(0, self._points[-1].at_ms - one.since_ms)

    def _reached_at(self, key: TopicPartition, committed: Offset) -> int | None:
        """ms before the newest point at which a record first lay at `committed`; by the last point without it."""
        if not self._points:
            return None
        newest = self._points[-1]
        first: Point | None = None
        life = newest.topics[key[0]].topic_id if key[0] in newest.topics else b""
        for point in reversed(self._points):
            topic = point.topics.get(key[0])
            if topic is None or topic.topic_id != life or _end(point, key) <= committed:
                break
            first = point
        return None if first is None else newest.at_ms - first.at_ms

    def _two(self, span_ms: int) -> tuple[Point | None, Point | None]:
        """The newest point, and the newest that is at least so much older; else the oldest one, if it is another."""
        if len(self._points) < 2:
            return None, None
        newest = self._points[-1]
        for point in reversed(self._points):
            if newest.at_ms - point.at_ms >= span_ms:
                return newest, point
        oldest = self._points[0]
        return (newest, oldest) if oldest.at_ms < newest.at_ms else (None, None)


def _point(sample: Sample) -> Point:
    topics = {name: _ends(topic) for name, topic in sample.topics.items()}
    groups = {
        name: (sum(max(0, one.committed) for one in group.counted), group.lag)
        for name, group in sample.groups.items()
        if not group.unread
    }
    cells = sum(len(one.ends) + 4 for one in topics.values()) + 4 * len(groups)
    return Point(sample.at_ms, sample.wall_ms, topics, groups, cells)


def _ends(topic: Topic) -> Ends:
    ends = array("q", [UNKNOWN]) * (max((one.index for one in topic.partitions), default=-1) + 1)
    for one in topic.partitions:
        ends[one.index] = one.end
    return Ends(topic.topic_id, ends, topic.size_bytes)


def _end(point: Point, key: TopicPartition) -> Offset:
    topic = point.topics.get(key[0])
    return topic.ends[key[1]] if topic is not None and key[1] < len(topic.ends) else UNKNOWN


def _rate(newer: Point, older: Point, name: str) -> Rate:
    """An end that went back (an unclean election) counts as no growth; a topic made anew has no rate yet."""
    new, old = newer.topics.get(name), older.topics.get(name)
    took_ms = newer.at_ms - older.at_ms
    if new is None or old is None or new.topic_id != old.topic_id or took_ms <= 0:
        return NO_RATE
    both = [(after, before) for after, before in zip(new.ends, old.ends, strict=False) if after >= 0 and before >= 0]
    records = sum(max(0, after - before) for after, before in both) * 1000 / took_ms if both else None
    grown = new.size_bytes - old.size_bytes if new.size_bytes >= 0 and old.size_bytes >= 0 else None
    return Rate(records, None if grown is None or grown < 0 else grown * 1000 / took_ms)
