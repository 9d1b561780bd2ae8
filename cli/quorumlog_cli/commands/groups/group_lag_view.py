"""What `quorumlog group lag` shows: sums by topic, rates between two looks, when nothing will be left. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from quorumlog.watch.words import duration, spark

if TYPE_CHECKING:
    from quorumlog.client.administration.group_lag import GroupLag, PartitionLag

MAX_BARS = 8


class TopicLag(NamedTuple):
    """total, max: of the partitions' lags, in what the cluster counts. behind_ms: of the one that is most behind; None:
    not known."""

    topic: str
    total: int
    max: int
    distance: int
    behind_ms: int | None
    is_estimate: bool
    is_read: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What was found at one moment. at_ms: on any clock that only goes on."""

    at_ms: int
    found: GroupLag


class Rates(NamedTuple):
    """Records (or offsets) a second between two looks. clear_ms: until nothing is left at these rates; None: never."""

    comes_in: float
    is_read: float
    clear_ms: int | None


def by_topic(found: GroupLag) -> list[TopicLag]:
    """By name. Partitions without a leader do not count."""
    topics: dict[str, list[PartitionLag]] = {}
    for (topic, _), one in sorted(found.partitions.items()):
        if one.lag is not None:
            topics.setdefault(topic, []).append(one)
    return [_summed(topic, parts) for topic, parts in topics.items()]


def _summed(topic: str, parts: Sequence[PartitionLag]) -> TopicLag:
    lags = [one.lag or 0 for one in parts]
    times = [one.behind_ms for one in parts]
    behind_ms = None if None in times else max([one for one in times if one is not None], default=0)
    distance = sum([one.distance or 0 for one in parts])
    return TopicLag(
        topic,
        sum(lags),
        max(lags),
        distance,
        behind_ms,
        any(one.is_estimate for one in parts),
        all(one.is_read for one in parts),
    )


def counts_records(found: GroupLag) -> bool:
    """False: the cluster told the distance of offsets only, as a Kafka does."""
    return all(one.records is not None for one in found.partitions.values() if one.end is not None)


def total_of(topics: Iterable[TopicLag]) -> int:
    """Of what is read: an offset that no member reads is no lag."""
    return sum([one.total for one in topics if one.is_read])


def rates(before: Look, now: Look, topic: str | None = None) -> Rates | None:
    """Of one topic, or of all that are read. None: no time has passed, or there is nothing that both looks have.

    What is read is what the committed offsets have moved, and what comes in is by how much more or less the lag has
    changed meanwhile.
    """
    seconds = (now.at_ms - before.at_ms) / 1000
    both = [
        (before.found.partitions[key], one)
        for key, one in now.found.partitions.items()
        if key in before.found.partitions
        and one.lag is not None
        and (one.is_read if topic is None else key[0] == topic)
    ]
    both = [(old, new) for old, new in both if old.lag is not None and new.committed >= old.committed]
    if seconds <= 0 or not both:
        return None
    comes_in = sum([(new.end or 0) - (old.end or 0) for old, new in both]) / seconds
    left, was = sum([new.lag or 0 for _, new in both]), sum([old.lag or 0 for old, _ in both])
    falls = (was - left) / seconds
    is_read = max(0.0, comes_in + falls)
    return Rates(max(0.0, comes_in), is_read, 0 if not left else round(left / falls * 1000) if falls > 0 else None)


def document(found: GroupLag, topics: Sequence[TopicLag], speed: Rates | None, *, with_eta: bool) -> dict[str, Any]:
    read = [one for one in topics if one.is_read]
    told: dict[str, Any] = {
        "group": found.group_id,
        "state": found.state,
        "members": found.members,
        "counted_in": "records" if counts_records(found) else "offsets",
        "total": total_of(topics),
        "max": max((one.max for one in read), default=0),
        "distance": found.distance,
        "behind_ms": found.behind_ms,
        "is_estimate": found.is_estimate,
        "topics": [one._asdict() for one in topics],
    }
    if with_eta:
        told |= {
            "in_per_second": None if speed is None else round(speed.comes_in, 1),
            "out_per_second": None if speed is None else round(speed.is_read, 1),
            "clear_in_ms": None if speed is None else speed.clear_ms,
        }
    return told


def headline(found: GroupLag, topics: Sequence[TopicLag], speed: Rates | None, totals: Sequence[int]) -> str:
    """One line for `-w`. totals: of the looks so far, the newest last."""
    unit = "records" if counts_records(found) else "offsets"
    parts = [f"{'at most ' if found.is_estimate else ''}{total_of(topics)} {unit} to read"]
    if found.behind_ms:
        parts.append(f"{duration(found.behind_ms)} behind")
    if speed is not None and total_of(topics):
        is_clear = speed.clear_ms is not None
        parts.append(f"clear in ~{duration(speed.clear_ms or 0)}" if is_clear else "not falling")
    return f"{found.group_id}  {found.state}  {' · '.join(parts)}  {spark(totals[-MAX_BARS:], MAX_BARS)}".rstrip()
