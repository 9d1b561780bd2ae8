"""How far the groups are behind that this broker coordinates; for its metrics.

Their coordinator knows what they have committed, and the leaders of the partitions count what is readable behind it. So
this broker asks them while somebody looks: a scrape gets what was counted last, and for minutes after it the counts are
made again every few seconds. A node that nobody scrapes asks nobody.

What is gone is never told: whoever looks gets only offsets that a coordinator here still has, of a topic that has the
same id, whatever was counted. An offset of a topic that none of the group's members reads is no lag; of a group without
members nobody can say that, because it may be read by assignment, so all of its offsets count (decision 140).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, NodeId, Offset, Uuid
from quorumlog.messages.fetch import (
    CountedRecords,
    CountRecordsPartition,
    CountRecordsRequest,
    CountRecordsResponse,
    CountRecordsTopic,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog_broker.coordinator.runtime.coordinator import State
from quorumlog_broker.coordinator.runtime.group_coordinator import GroupCoordinator
from quorumlog_broker.coordinator.runtime.group_coordinators import GroupCoordinators
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_quorum.metadata.image import Image

REFRESH_MS = 5_000  # between two counts while somebody looks
LOOKED_AT_MS = 300_000  # since the last look, that counts go on: a Prometheus that looks more seldom shows gaps anyway
MAX_PARTITIONS = 10_000  # of all groups together; what comes later is not counted
PARTITIONS_A_CALL = 500  # of one leader
GROUPS_A_TURN = 64


class Subject(NamedTuple):
    """A committed offset, and the coordinator that has it."""

    coordinator: GroupCoordinator
    group_id: str
    topic: str
    topic_id: Uuid
    partition: int
    offset: Offset


class Lag(NamedTuple):
    """Of one group in one topic. records: at most so many where is_estimate. first_ms: wall clock of the oldest record
    that is to be read, among the first ones of the partitions; None: nothing is to be read, or it has no time."""

    records: int
    is_estimate: bool
    first_ms: int | None


class GroupLags:
    """Used by the node's loop only. count: the answer of this broker itself, as a leader."""

    def __init__(
        self,
        node_id: NodeId,
        groups: GroupCoordinators,
        peers: Peers,
        count: Callable[[CountRecordsRequest], Awaitable[CountRecordsResponse]],
        *,
        image: Callable[[], Image],
        clock: Clock,
        nursery: Nursery,
    ) -> None:
        self._node_id, self._groups, self._peers, self._count_here = node_id, groups, peers, count
        self._image = image
        self._clock, self._nursery = clock, nursery
        self._counted: dict[Subject, CountedRecords] = {}
        self._looked_ms = 0
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self.left_out = 0  # partitions that were too many for the last count

    def close(self) -> None:
        """The node stops: nothing is counted any more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()

    def look(self) -> dict[tuple[str, str], Lag]:
        """By group and topic, as counted last. From now on it is counted again for a while."""
        self._looked_ms = self._clock.now_ms()
        if (self._task is None or self._task.done()) and not self._is_closed:
            self._task = self._nursery.start(self._keep_counting(), "lags of groups")
        return self.now()

    def now(self) -> dict[tuple[str, str], Lag]:
        """`look`, without consequences."""
        found: dict[tuple[str, str], Lag] = {}
        ids = self._image().topic_ids
        for subject, one in self._counted.items():
            if ids.get(subject.topic) != subject.topic_id or not _is_there(subject):
                continue
            key = subject.group_id, subject.topic
            first_ms = one.first_timestamp_ms if one.records and one.first_timestamp_ms >= 0 else None
            so_far = found.get(key, Lag(0, False, None))
            times = [time for time in (so_far.first_ms, first_ms) if time is not None]
            found[key] = Lag(
                so_far.records + one.records, so_far.is_estimate or one.is_estimate, min(times, default=None)
            )
        return found

    async def _keep_counting(self) -> None:
        while self._clock.now_ms() - self._looked_ms < LOOKED_AT_MS:
            await self.refresh()
            await asyncio.sleep(REFRESH_MS / 1000)
        self._counted = {}

    async def refresh(self) -> None:
        """Count all of it now. What no leader tells is left out until the next time."""
        by_leader: dict[NodeId, list[Subject]] = {}
        image = self._image()
        for subject in await self._subjects():
            partition = image.partition(subject.topic_id, subject.partition)
            if partition is not None and partition.leader != NO_NODE:
                by_leader.setdefault(partition.leader, []).append(subject)
        counted: dict[Subject, CountedRecords] = {}
        for leader, subjects in by_leader.items():
            for at in range(0, len(subjects), PARTITIONS_A_CALL):
                with suppress(ApiError, RpcError):
                    counted.update(await self._count(leader, subjects[at : at + PARTITIONS_A_CALL]))
        self._counted = counted

    async def _subjects(self) -> list[Subject]:
        found: list[Subject] = []
        self.left_out = 0
        for coordinator in self._groups.all:
            for number, group_id in enumerate(coordinator.group_ids()):
                for topic, topic_id, index, offset in coordinator.offsets_read(group_id):
                    if len(found) < MAX_PARTITIONS:
                        found.append(Subject(coordinator, group_id, topic, topic_id, index, offset))
                    else:
                        self.left_out += 1
                if number % GROUPS_A_TURN == GROUPS_A_TURN - 1:
                    await asyncio.sleep(0)
        return found

    async def _count(self, leader: NodeId, subjects: list[Subject]) -> dict[Subject, CountedRecords]:
        topics: dict[tuple[str, Uuid], list[Subject]] = {}
        for subject in subjects:
            topics.setdefault((subject.topic, subject.topic_id), []).append(subject)
        request = CountRecordsRequest(
            topics=tuple(
                CountRecordsTopic(
                    name=name,
                    topic_id=topic_id,
                    partitions=tuple(CountRecordsPartition(index=o.partition, start_offset=o.offset) for o in asked),
                )
                for (name, topic_id), asked in topics.items()
            )
        )
        is_here = leader == self._node_id
        response: CountRecordsResponse = await (
            self._count_here(request) if is_here else self._peers.call(leader, request)
        )
        return dict(_answered(topics.values(), response))


def _answered(
    asked: Iterable[Sequence[Subject]], response: CountRecordsResponse
) -> Iterator[tuple[Subject, CountedRecords]]:
    """In the order of the request: a partition may be in it for several groups."""
    for subjects, topic in zip(asked, response.topics, strict=True):
        for subject, one in zip(subjects, topic.partitions, strict=True):
            if one.error_code == ErrorCode.NONE:
                yield subject, one


def _is_there(subject: Subject) -> bool:
    coordinator = subject.coordinator
    return coordinator.state is State.ACTIVE and coordinator.has_offset(
        subject.group_id, (subject.topic, subject.partition)
    )
