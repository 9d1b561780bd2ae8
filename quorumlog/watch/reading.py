"""Takes samples of a cluster with an admin client: what one look asks, and what becomes of an answer that is missing.

A part that the cluster refuses, does not know or does not answer in time is named in the sample, with the reason; the
others are there. Only a client that is not let in at all (AuthenticationFailed) ends the look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from quorumlog.client.administration.logs import current_replicas
from quorumlog.client.errors import AuthenticationFailed, NoProtocol, QuorumlogError, RequestFailed
from quorumlog.clock import Clock
from quorumlog.ids import NodeId, Offset, TopicPartition
from quorumlog.messages.admin import ListedGroup, LogDirDescription
from quorumlog.messages.cluster import ClusterBroker, TopicMetadata
from quorumlog.messages.fetch import CountedRecords
from quorumlog.messages.quorum import DescribeQuorumResponse, QuorumReplica
from quorumlog.rpc.transport import RpcError
from quorumlog.watch.group_view import end_of, group_of
from quorumlog.watch.sample import (
    UNKNOWN,
    Broker,
    BrokerState,
    Directory,
    Group,
    GroupOffset,
    Part,
    Partition,
    Quorum,
    QuorumMember,
    Sample,
    Topic,
)

if TYPE_CHECKING:
    from quorumlog.client.admin import AsyncAdmin

T = TypeVar("T")

PARTITIONS_AT_ONCE = 500  # whose offsets one round asks for: a node answers it in a short turn
MAX_PARTITIONS = 20_000  # whose offsets a look asks for
GROUPS_A_LOOK = 50  # described; the others keep what an earlier look has seen
MAX_GROUPS = 10_000
PATIENCE_MS = 5_000  # for one answer


class Reader:
    """admin: its client. It keeps which groups come next, so one reader takes all samples of a watch."""

    def __init__(self, admin: AsyncAdmin, clock: Clock, *, groups_a_look: int = GROUPS_A_LOOK) -> None:
        self._admin, self._clock, self._groups_a_look = admin, clock, groups_a_look
        self._groups: dict[str, Group] = {}
        self._has_no_counts = False  # an Apache Kafka has none
        self._waited_for_counts = False  # in vain, in this look: the other groups do not wait, too
        self._turn: list[str] = []  # groups to be described, the next one first

    async def look(self) -> Sample:
        """Raises AuthenticationFailed."""
        began_ms = self._clock.now_ms()
        missing: dict[Part, str] = {}
        self._waited_for_counts = False
        cluster = await self._part(Part.BROKERS, missing, self._admin.describe_cluster)
        disks = await self._part(Part.DISKS, missing, self._log_dirs)
        quorum = await self._part(Part.QUORUM, missing, lambda: self._admin.describe_quorum(PATIENCE_MS))
        described = await self._part(Part.TOPICS, missing, self._admin.list_topics)
        topics = await self._with_moves({one.name: topic_of(one) for one in described or ()})
        topics = await self._with_offsets(topics, missing)
        topics = with_sizes(topics, disks or {})
        listed = await self._part(Part.GROUPS, missing, self._admin.list_groups)
        if listed is not None:
            self._groups = await self._described(listed, topics)
        now_ms = self._clock.now_ms()
        return Sample(
            at_ms=now_ms,
            wall_ms=self._clock.wall_ms(),
            took_ms=now_ms - began_ms,
            cluster_id=cluster.cluster_id if cluster is not None else "",
            controller_id=cluster.controller_id if cluster is not None else -1,
            brokers=brokers_of(cluster.brokers, disks or {}) if cluster is not None else (),
            quorum=None if quorum is None else quorum_of(quorum),
            topics=topics,
            groups=self._groups if listed is not None else {},
            missing=missing,
        )

    async def _part(self, part: Part, missing: dict[Part, str], ask: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await ask()
        except AuthenticationFailed:
            raise
        except (QuorumlogError, RpcError) as error:
            missing[part] = reason(error)
            return None

    async def _with_moves(self, topics: dict[str, Topic]) -> dict[str, Topic]:
        """Which replicas are being added: asked for only where some are not in sync. A cluster that does not tell has
        them counted as missing."""
        if not any(topic.under_replicated for topic in topics.values()):
            return topics
        moves = await self._part(Part.TOPICS, {}, self._admin.list_partition_reassignments)
        adding = {key: one.adding for key, one in (moves or {}).items() if one.adding}
        return {
            name: replace(
                topic,
                partitions=tuple(replace(one, adding=adding.get((name, one.index), ())) for one in topic.partitions),
            )
            if any(key[0] == name for key in adding)
            else topic
            for name, topic in topics.items()
        }

    async def _log_dirs(self) -> dict[NodeId, tuple[LogDirDescription, ...]]:
        silent: dict[NodeId, str] = {}
        return await self._admin.describe_log_dirs(timeout_ms=PATIENCE_MS, silent=silent)

    async def _with_offsets(self, topics: dict[str, Topic], missing: dict[Part, str]) -> dict[str, Topic]:
        """A partition without a leader has no offsets to ask for."""
        wanted = [(name, one.index) for name, topic in topics.items() for one in topic.partitions if not one.is_offline]
        if len(wanted) > MAX_PARTITIONS:
            missing[Part.OFFSETS] = (
                f"{len(wanted)} partitions are more than the {MAX_PARTITIONS} whose offsets a look asks for"
            )
            wanted = wanted[:MAX_PARTITIONS]
        found: dict[TopicPartition, tuple[int, int]] = {}
        for first in range(0, len(wanted), PARTITIONS_AT_ONCE):
            keys = wanted[first : first + PARTITIONS_AT_ONCE]
            try:
                ranges = await self._admin.list_offset_ranges(keys, PATIENCE_MS)
            except AuthenticationFailed:
                raise
            except (QuorumlogError, RpcError) as error:
                missing[Part.OFFSETS] = reason(error)
                continue
            found.update((key, (begin.offset, end.offset)) for key, (begin, end) in ranges.items())
        return {name: _with_ranges(topic, found) for name, topic in topics.items()}

    async def _described(self, listed: Iterable[ListedGroup], topics: Mapping[str, Topic]) -> dict[str, Group]:
        """Every group of the list; GROUPS_A_LOOK of them described anew, by turns."""
        present = {one.group_id: one for one in list(listed)[:MAX_GROUPS]}
        waiting = set(self._turn)
        self._turn = [one for one in self._turn if one in present] + [one for one in present if one not in waiting]
        chosen, self._turn = self._turn[: self._groups_a_look], self._turn[self._groups_a_look :]
        self._turn += chosen
        found: dict[str, Group] = {}
        for group_id, one in present.items():
            older = self._groups.get(group_id)
            found[group_id] = group_of(one, None, {}, topics) if older is None else older
        for group_id in chosen:
            found[group_id] = await self._describe(present[group_id], topics)
        return {name: _with_ends(group, present[name], topics) for name, group in found.items()}

    async def _describe(self, listed: ListedGroup, topics: Mapping[str, Topic]) -> Group:
        try:
            description = await self._admin.describe_group(listed.group_id)
            committed = await self._admin.group_offsets(listed.group_id)
        except AuthenticationFailed:
            raise
        except (QuorumlogError, RpcError) as error:
            return replace(group_of(listed, None, {}, topics), unread=reason(error))
        return await self._counted(group_of(listed, description, committed, topics))

    async def _counted(self, group: Group) -> Group:
        """With the records that are to be read, where the cluster counts them and this client may ask for them."""
        wanted = {one.key: one.committed for one in group.counted if one.distance > 0}
        if not wanted or self._has_no_counts or self._waited_for_counts:
            return group
        try:
            found = await self._admin.count_records(wanted)
        except AuthenticationFailed:
            raise
        except NoProtocol:
            self._has_no_counts = True
            return group
        except (QuorumlogError, RpcError) as error:
            self._waited_for_counts = not isinstance(error, RequestFailed)
            return group
        now_ms = self._clock.now_ms()
        return replace(group, offsets=tuple(_with_count(one, found.get(one.key), now_ms) for one in group.offsets))


def reason(error: QuorumlogError | RpcError) -> str:
    """A sentence for people."""
    if isinstance(error, RequestFailed):
        words = {
            "CLUSTER_AUTHORIZATION_FAILED": "it needs the right to Describe the cluster",
            "GROUP_AUTHORIZATION_FAILED": "it needs the right to Describe the group",
            "UNSUPPORTED_VERSION": "this cluster's protocol does not have it",
        }
        return words.get(error.code.name, str(error))
    return str(error) or type(error).__name__


def topic_of(topic: TopicMetadata) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=bytes(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(
            Partition(
                index=one.index,
                leader=one.leader_id,
                epoch=one.leader_epoch,
                replicas=tuple(one.replicas),
                isr=tuple(one.isr),
                offline=tuple(one.offline_replicas),
            )
            for one in sorted(topic.partitions, key=lambda one: one.index)
        ),
    )


def brokers_of(
    brokers: Iterable[ClusterBroker], disks: Mapping[NodeId, tuple[LogDirDescription, ...]]
) -> tuple[Broker, ...]:
    return tuple(
        Broker(
            node_id=one.node_id,
            host=(one.endpoints[0] if one.endpoints else one).host,
            port=(one.endpoints[0] if one.endpoints else one).port,
            rack=one.rack or "",
            state=_state(one),
            directories=tuple(_directory(each) for each in disks.get(one.node_id, ())),
        )
        for one in sorted(brokers, key=lambda one: one.node_id)
    )


def _state(broker: ClusterBroker) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.STOPPING if broker.in_controlled_shutdown else BrokerState.SERVING


def _directory(directory: LogDirDescription) -> Directory:
    sizes = [part.size_bytes for topic in directory.topics for part in topic.partitions]
    return Directory(
        path=directory.path,
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
        size_bytes=sum(sizes),
        replicas=len(sizes),
        error=(directory.error_message or "it is offline") if directory.error_code else "",
        is_cordoned=directory.is_cordoned,
    )


def quorum_of(quorum: DescribeQuorumResponse) -> Quorum:
    return Quorum(
        leader_id=quorum.leader_id,
        epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        voters=tuple(_member(one) for one in quorum.voters),
        observers=tuple(_member(one) for one in quorum.observers),
    )


def _member(replica: QuorumReplica) -> QuorumMember:
    return QuorumMember(
        node_id=replica.replica_id,
        end=replica.log_end_offset,
        since_fetch_ms=replica.since_fetch_ms,
        since_caught_up_ms=replica.since_caught_up_ms,
    )


def with_sizes(topics: Mapping[str, Topic], disks: Mapping[NodeId, tuple[LogDirDescription, ...]]) -> dict[str, Topic]:
    """Of each partition the bytes of its leader's replica, if that broker has told them."""
    held = current_replicas(disks)

    def size_of(name: str, one: Partition) -> int:
        found = held.get((name, one.index, one.leader))
        return UNKNOWN if found is None else found.size_bytes

    return {
        name: replace(topic, partitions=tuple(replace(one, size_bytes=size_of(name, one)) for one in topic.partitions))
        for name, topic in topics.items()
    }


def _with_ranges(topic: Topic, found: Mapping[TopicPartition, tuple[int, int]]) -> Topic:
    nothing = (UNKNOWN, UNKNOWN)
    ranges = [found.get((topic.name, one.index), nothing) for one in topic.partitions]
    return replace(
        topic,
        partitions=tuple(
            replace(one, first=first, end=end) for one, (first, end) in zip(topic.partitions, ranges, strict=True)
        ),
    )


def _with_ends(group: Group, listed: ListedGroup, topics: Mapping[str, Topic]) -> Group:
    """The state of the list and the ends of this look, also where the rest is of an earlier one."""
    ends = {(one.topic, one.partition): end_of(topics, (one.topic, one.partition)) for one in group.offsets}
    offsets = tuple(_with_end(one, ends[one.key]) for one in group.offsets)
    return replace(group, state=listed.state or group.state, offsets=offsets)


def _with_end(one: GroupOffset, end: Offset) -> GroupOffset:
    """What has come since the records were counted is at most as many as there are new offsets."""
    came = max(0, end - one.end) if one.records >= 0 and one.end >= 0 else 0
    if not came:
        return replace(one, end=end)
    return replace(one, end=end, records=one.records + came, is_estimate=True)


def _with_count(one: GroupOffset, counted: CountedRecords | None, now_ms: int) -> GroupOffset:
    if counted is None or one.distance <= 0:
        return one
    is_timed = counted.records > 0 and counted.first_timestamp_ms >= 0
    return replace(
        one,
        records=counted.records,
        is_estimate=counted.is_estimate,
        since_ms=now_ms - counted.age_ms if is_timed else None,
    )
