"""How far a group is behind: in readable records, in time, and as a distance of offsets.

Leaders of quorumlog count the records (CountRecords). A Kafka tells the ends of its logs only, so of its groups there
is the distance of offsets, which counts markers, aborted and compacted records, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorumlog.client.administration.counts import count_records
from quorumlog.client.administration.groups import GroupDescription
from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import NoProtocol
from quorumlog.client.group.assigned import assigned
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.offsets import LATEST, resolve_offsets
from quorumlog.ids import NO_NODE, Offset, TopicPartition
from quorumlog.messages.fetch import CountedRecords
from quorumlog.messages.groups import DescribedConsumerMember


class PartitionLag(NamedTuple):
    """Of a partition that a group has committed.

    end: exclusive, of what its reader may read; None: the partition has no leader, or is gone, as one of a former topic
    is. distance: of offsets from `committed` to it. records: that are to be read; None: this cluster cannot count them.
    is_estimate: they are at most so many. behind_ms: the age of the first of them; 0: there is none; None: it is not
    known. is_read: a member reads the topic, or the group has no members, so that nobody can tell.
    """

    committed: Offset
    end: Offset | None
    distance: int | None
    records: int | None
    is_estimate: bool
    behind_ms: int | None
    is_read: bool

    @property
    def lag(self) -> int | None:
        """The best that the cluster can say."""
        return self.distance if self.records is None else self.records


class GroupLag(NamedTuple):
    """The sums are of the partitions that are read, and 0 where there is none of them. records, behind_ms: None if one
    of them is not known."""

    group_id: str
    state: str
    members: int
    partitions: dict[TopicPartition, PartitionLag]

    @property
    def records(self) -> int | None:
        found = [one.records for one in self._counted()]
        return None if None in found else sum([one for one in found if one is not None])

    @property
    def distance(self) -> int:
        return sum([one.distance or 0 for one in self._counted()])

    @property
    def behind_ms(self) -> int | None:
        found = [one.behind_ms for one in self._counted()]
        return None if None in found else max([one for one in found if one is not None], default=0)

    @property
    def is_estimate(self) -> bool:
        return any(one.is_estimate for one in self._counted())

    def _counted(self) -> list[PartitionLag]:
        return [one for one in self.partitions.values() if one.is_read and one.end is not None]


async def group_lag(
    link: Link,
    description: GroupDescription,
    committed: Mapping[TopicPartition, CommittedOffset],
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
) -> GroupLag:
    """Of a group that is described, and of what it has committed. Raises RequestFailed, Unavailable."""
    existing = await _led(link, committed)
    wanted = {key: committed[key].offset for key in existing}
    counted: dict[TopicPartition, CountedRecords] = {}
    ends: dict[TopicPartition, Offset] = {}
    if wanted:
        try:
            counted = await count_records(link, wanted, isolation_level=isolation_level, timeout_ms=timeout_ms)
            ends = {key: one.end_offset for key, one in counted.items()}
        except NoProtocol:
            latest = dict.fromkeys(wanted, LATEST)
            found = await resolve_offsets(link, latest, timeout_ms, isolation_level=isolation_level)
            ends = {key: one.offset for key, one in found.items()}
    topics = read_topics(description)
    group = description.group
    return GroupLag(
        group.group_id,
        group.group_state,
        len(group.members),
        {
            key: _lag(
                committed[key].offset, ends.get(key), counted.get(key), is_read=topics is None or key[0] in topics
            )
            for key in sorted(committed)
        },
    )


def _lag(committed: Offset, end: Offset | None, counted: CountedRecords | None, *, is_read: bool) -> PartitionLag:
    distance = None if end is None else max(0, end - committed)
    if counted is None:
        behind_ms = 0 if distance == 0 else None
        return PartitionLag(committed, end, distance, None, False, behind_ms, is_read)
    is_timed = counted.first_timestamp_ms >= 0 or not counted.records
    behind_ms = counted.age_ms if is_timed else None
    return PartitionLag(committed, end, distance, counted.records, counted.is_estimate, behind_ms, is_read)


async def _led(link: Link, committed: Mapping[TopicPartition, CommittedOffset]) -> list[TopicPartition]:
    """Those partitions that exist and have a leader, without the offsets of former topics."""
    if not committed:
        return []
    await link.refresh(list(dict.fromkeys(topic for topic, _ in committed)), create=False)
    found = []
    for (name, index), one in committed.items():
        topic = link.cache.topics.get(name)
        if topic is None or index not in topic.partitions or topic.partitions[index].leader_id == NO_NODE:
            continue
        if one.may_be_of(link.cache.life_of(name).topic_id):
            found.append((name, index))
    return found


def read_topics(description: GroupDescription) -> frozenset[str] | None:
    """That members read now; None where nobody can tell: there are no members, or an assignment that is not readable,
    as of another kind of group or in a rebalance."""
    found = set[str]()
    for member in description.group.members:
        reads = assigned(description.group, member)
        if reads is None:
            return None
        found.update(reads)
        if isinstance(member, DescribedConsumerMember):
            found.update(member.subscribed_topic_names)
    return frozenset(found) or None
