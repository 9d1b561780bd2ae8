"""Target assignments of groups of the consumer protocol, looked at when a coordinator has computed one.

- target-assignment (16): it gives each partition of the topics that are subscribed to once, to members that subscribe
  to them only; and where all subscribe to the same topics, no member has two more than another one: in all with the
  assignor `uniform`, of each topic with `range`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jepsen.checkers.findings import Findings
from quorumlog.ids import Uuid
from quorumlog_broker.coordinator.groups.consumer.assignment import Partition
from quorumlog_broker.coordinator.groups.consumer.assignors import assign_uniform
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.consumer.targets import ASSIGNORS, preferred_assignor
from quorumlog_broker.coordinator.groups.shard import GroupShard

NAME, COMPUTED = "target-assignment", "target assignments"
Numbers = dict[Uuid, int]
"""of partitions"""


class TargetAssignments:
    """counts: of computed targets that were looked at."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.counts = {COMPUTED: 0}

    def listen(self, shard: GroupShard) -> None:
        """Call once for each core."""
        consumers = shard._consumers
        targets: Any = consumers.targets
        compute = targets._compute

        def computed(group: ConsumerGroup) -> Iterator[None]:
            epoch = group.epoch
            wanted = _wanted(group, consumers.settings.cluster)
            yield from compute(group)
            if consumers.groups.get(group.group_id) is group and group.assignment_epoch == group.epoch == epoch:
                self.counts[COMPUTED] += 1
                assignor = preferred_assignor(group, consumers.settings.assignors)
                for text in broken_targets(group, wanted, in_all=ASSIGNORS[assignor] is assign_uniform):
                    self._findings.broken(NAME, f"group {group.group_id} in epoch {epoch}, {assignor}: {text}")

        targets._compute = computed


def _wanted(group: ConsumerGroup, cluster: Cluster) -> dict[str, Numbers]:
    """What each member subscribes to, as far as it is there."""
    found: dict[str, Numbers] = {}
    for member_id, member in group.members.items():
        topics = [topic for name in group.topics_of(member) if (topic := cluster.topic(name)) is not None]
        found[member_id] = {topic.topic_id: topic.partitions for topic in topics}
    return found


def broken_targets(group: ConsumerGroup, wanted: dict[str, Numbers], *, in_all: bool) -> Iterator[str]:
    """wanted: by member. in_all: numbers are equal over all topics, not of each topic alone."""
    holders: dict[Partition, str] = {}
    sizes: dict[str, dict[Uuid, int]] = {member_id: {} for member_id in wanted}
    for member_id in group.target:
        for topic in group.target_of(member_id):
            if topic.topic_id not in wanted.get(member_id, {}):
                yield f"{member_id} gets {topic.partitions} of {topic.topic_id.hex()}, to which it does not subscribe"
                continue
            sizes[member_id][topic.topic_id] = len(topic.partitions)
            for index in topic.partitions:
                other = holders.setdefault((topic.topic_id, index), member_id)
                if other != member_id or topic.partitions.count(index) > 1:
                    yield f"{other} and {member_id} get {topic.topic_id.hex()}-{index}"
    topics = {topic_id: number for numbers in wanted.values() for topic_id, number in numbers.items()}
    every = {(topic_id, index) for topic_id, number in topics.items() for index in range(number)}
    if every != holders.keys():
        yield f"{sorted(every ^ holders.keys())} are given to nobody, or do not exist"
    if len({tuple(sorted(numbers.items())) for numbers in wanted.values()}) == 1:
        yield from _unfair(sizes, topics, in_all=in_all)


def _unfair(sizes: dict[str, dict[Uuid, int]], topics: Numbers, *, in_all: bool) -> Iterator[str]:
    for chosen in [list(topics)] if in_all else [[topic_id] for topic_id in topics]:
        found = {member_id: sum(of.get(one, 0) for one in chosen) for member_id, of in sizes.items()}
        if max(found.values()) - min(found.values()) > 1:
            yield f"the members have {found} partitions"
