"""How far reassignments and moves between directories are: bytes, and the time that is left at the rate seen so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from quorumlog.planner.cluster import TopicPartition
from quorumlog.watch.words import duration, size
from quorumlog_cli.commands.partitions.partition_reading import Described, held_replicas
from quorumlog_cli.terminal import output

if TYPE_CHECKING:
    from quorumlog.client.administration.partitions import Reassignment
    from quorumlog.ids import NodeId


class Copy(NamedTuple):
    """A replica that is being made. path: its directory, where it moves inside a broker; else "".

    done_bytes: what it has; at most total_bytes, which is what it is copied from.
    """

    topic: str
    partition: int
    node_id: NodeId
    path: str
    done_bytes: int
    total_bytes: int


class Sample(NamedTuple):
    """reassignments: all that are under way, also those that only remove replicas.

    away: brokers that are to get something, and that are fenced or do not answer.
    """

    copies: tuple[Copy, ...]
    reassignments: Mapping[TopicPartition, Reassignment]
    away: tuple[NodeId, ...] = ()

    @property
    def is_over(self) -> bool:
        return not self.copies and not self.reassignments and not self.away

    @property
    def done_bytes(self) -> int:
        return sum(one.done_bytes for one in self.copies)

    @property
    def total_bytes(self) -> int:
        return sum(one.total_bytes for one in self.copies)

    @property
    def left_bytes(self) -> int:
        return self.total_bytes - self.done_bytes


def sample(reassignments: Mapping[TopicPartition, Reassignment], described: Described) -> Sample:
    held = held_replicas(described)
    largest: dict[TopicPartition, int] = {}
    for (topic, index, _), copies in held.items():
        here = max((copy.size_bytes for copy in copies if not copy.is_future), default=0)
        largest[topic, index] = max(largest.get((topic, index), 0), here)
    found = []
    for (topic, index), one in reassignments.items():
        total = largest.get((topic, index), 0)
        for node_id in one.adding:
            done = max((copy.size_bytes for copy in held.get((topic, index, node_id), ())), default=0)
            found.append(Copy(topic, index, node_id, "", min(done, total), total))
    for (topic, index, node_id), copies in held.items():
        for copy in copies:
            if copy.is_future:
                total = max((one.size_bytes for one in copies if not one.is_future), default=copy.size_bytes)
                found.append(Copy(topic, index, node_id, copy.path, min(copy.size_bytes, total), total))
    return Sample(tuple(sorted(found)), reassignments)


def rate(before: Sample, after: Sample, passed_s: float) -> float:
    """Bytes per second that were copied between two samples. What ended meanwhile counts as copied whole."""
    if passed_s <= 0:
        return 0.0
    now = {one[:4]: one for one in after.copies}
    copied = sum(
        (now[one[:4]].done_bytes if one[:4] in now else one.total_bytes) - one.done_bytes for one in before.copies
    )
    return max(0.0, copied / passed_s)


def left_s(found: Sample, bytes_per_s: float) -> float | None:
    """None: not known, as nothing is being copied."""
    return found.left_bytes / bytes_per_s if bytes_per_s > 0 else None


def sentence(found: Sample, bytes_per_s: float) -> str:
    """One line for a person who waits."""
    text = _progress(found, bytes_per_s)
    if not found.away:
        return text
    ids = ", ".join(str(node_id) for node_id in found.away)
    return f"{text}; waits for {'broker' if len(found.away) == 1 else 'brokers'} {ids}: fenced, or without an answer"


def _progress(found: Sample, bytes_per_s: float) -> str:
    if not found.copies:
        return f"{output.counted(len(found.reassignments), 'partition')} left; nothing to copy"
    share = 100 * found.done_bytes // max(1, found.total_bytes)
    text = f"{share} %, {found.done_bytes:,} of {found.total_bytes:,} bytes"
    parts = max(len(found.reassignments), len({one[:2] for one in found.copies}))
    text = f"{output.counted(parts, 'partition')} left; {text}"
    left = left_s(found, bytes_per_s)
    if left is None:
        return text
    return f"{text}, {size(bytes_per_s)}/s, {duration(left * 1000)} left"
