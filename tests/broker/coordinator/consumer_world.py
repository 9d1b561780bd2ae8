"""A `GroupWorld` whose members speak the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    MemberTopicPartitions,
    SubscribedTopicNames,
    TopicIdPartitions,
)
from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig
from quorumlog_broker.coordinator.groups.consumer.settings import FixedCluster, Topic
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from tests.broker.coordinator.group_world import G, GroupWorld

TIMEOUT_MS = 60_000

Owned = dict[str, set[int]]
"""topic name -> indexes"""


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def topics(version: int = 0, settings: Any = None, **partitions: int) -> FixedCluster:
    """name=number of partitions"""
    found = [Topic(topic_id(name), name, count) for name, count in partitions.items()]
    return FixedCluster(found, version, settings)


def to_message(owned: Owned) -> MemberTopicPartitions:
    return MemberTopicPartitions(
        topic_partitions=tuple(
            TopicIdPartitions(topic_id=topic_id(name), partitions=tuple(sorted(indexes)))
            for name, indexes in owned.items()
            if indexes
        )
    )


def named(partitions: Iterable[Any]) -> Owned:
    return {one.topic_id.rstrip(b"\0").decode(): set(one.partitions) for one in partitions}


class ConsumerWorld(GroupWorld):
    """It runs the slices of long work behind each call, unless `works` is False."""

    def __init__(self, config: GroupConfig | None = None, *, autocommit: bool = True, **partitions: int) -> None:
        self.cluster = topics(**(partitions or {"foo": 4}))
        self.works = True
        super().__init__(
            config or GroupConfig(initial_rebalance_delay_ms=0, consumer=ConsumerGroupConfig(assignment_interval_ms=0)),
            autocommit=autocommit,
        )
        self.shard.use(self.cluster)

    def use(self, cluster: FixedCluster) -> None:
        self.cluster = cluster
        self.shard.use(cluster)

    def _take(self) -> None:
        super()._take()
        while self.works and self.shard.has_work:
            self.shard.at(self.now_ms, self.wall_ms)
            self.shard.work()
            super()._take()

    def fail_over(self, *, keep: int | None = None) -> None:
        cluster = self.cluster
        self.log = self.log[:keep]
        super().fail_over()
        self.shard.use(cluster)

    def beat(
        self,
        member_id: str,
        epoch: int,
        owned: Owned | None = None,
        *,
        topics: str | None = None,
        group: str = G,
        client: str = "c",
        **more: Any,
    ) -> int:
        """The number of the call. topics: names, separated by spaces."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            group_instance_id=more.pop("instance", None),
            rebalance_timeout_ms=more.pop("timeout_ms", TIMEOUT_MS if epoch == 0 else -1),
            subscribed_topic_names=None if topics is None else SubscribedTopicNames(names=tuple(topics.split())),
            subscribed_topic_regex=more.pop("regex", None),
            topic_partitions=to_message({})
            if epoch == 0 and owned is None
            else None
            if owned is None
            else to_message(owned),
            **more,
        )
        return self.call("consumer_heartbeat", request, client=client)

    def told(self, *args: Any, **more: Any) -> ConsumerGroupHeartbeatResponse:
        """The answer of a heartbeat that succeeded."""
        response = self.answers[self.beat(*args, **more)]
        assert isinstance(response, ConsumerGroupHeartbeatResponse) and response.error_code == 0, response
        return response

    def refused(self, *args: Any, **more: Any) -> int:
        """The error code of a heartbeat."""
        return int(self.answers[self.beat(*args, **more)].error_code)

    def enter(self, member_id: str, topics: str | None = "foo", **more: Any) -> ConsumerGroupHeartbeatResponse:
        return self.told(member_id, 0, topics=topics, **more)

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard._consumers.groups.get(G)
        assert group is not None
        return group

    def described(self, group: str = G) -> DescribedConsumerGroup:
        found = self.answers[self.call("describe_consumer_groups", group)]
        assert isinstance(found, DescribedConsumerGroup)
        return found

    def assigned(self, member_id: str) -> Owned:
        return named(self.group.current[member_id].assigned_partitions)


def assignment(response: ConsumerGroupHeartbeatResponse) -> Owned | None:
    return None if response.assignment is None else named(response.assignment.topic_partitions)
