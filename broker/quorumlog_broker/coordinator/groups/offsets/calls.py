"""OffsetCommit, OffsetFetch and OffsetDelete, and which offsets of a group expire.

An offset belongs to a topic's id, and a name may be given to another topic. So every record bears the id, also that of
a transaction, which Kafka writes without; whoever reads by a name is given only what belongs to the topic that has it
now; and nothing is written any more for a topic of which this core was told that it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopicResult,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
)
from quorumlog.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from quorumlog.records.coordinator.offset_bytes import (
    begin_of_keys,
    end_of,
    key_in,
    key_of,
    rest_of,
    topic_and_index,
    value_of,
    write_value,
)
from quorumlog.records.coordinator.offsets import NO_TIMESTAMP, OffsetCommitValue
from quorumlog.slices import UNITS_A_SLICE, Pace, Sliced
from quorumlog_broker.coordinator.group_turn import Call, Producer, Turn, Write
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.membership import unknown_or_fenced
from quorumlog_broker.coordinator.groups.classic.rebalance import Rebalance
from quorumlog_broker.coordinator.groups.classic.subscription import CONSUMER, subscribed_topics
from quorumlog_broker.coordinator.groups.consumer.settings import Settings
from quorumlog_broker.coordinator.groups.offsets.table import OffsetTable, Partition, View

BROKERS_RETENTION = -1
LAST_TIME_MS = 2**63 - 1  # that a record can hold; old clients ask for the longest retention and mean for ever
GONE_MAX = 1_000  # ids of deleted topics that are remembered: calls that name one are on their way for seconds at most
CHECKS_A_STEP = 4_096  # partitions
COMMITS_A_STEP = UNITS_A_SLICE // 2  # a commit takes twice as long as a look, with the batch that it leaves in

Allowed = Callable[[OffsetCommitTopic, int], ErrorCode]
"""Whether the partition of this index may be committed."""


class Kept(NamedTuple):
    """What a group keeps. subscribed: the topics that its members consume; None if any topic may be one of them.
    empty_since: from when the retention counts, in ms since 1970; None: from each commit."""

    subscribed: frozenset[str] | None
    empty_since: int | None


class OffsetCalls:
    def __init__(self, turn: Turn, settings: Settings, rebalance: Rebalance, table: OffsetTable) -> None:
        self._turn, self._settings, self._rebalance, self._table = turn, settings, rebalance, table
        self._config = settings.config
        self._gone: dict[bytes, None] = {}  # topics, the one that was deleted last at the end

    # --- commit ---

    def refusal(self, group: ClassicGroup, request: OffsetCommitRequest) -> ErrorCode:
        """Who may commit: a member in its generation, and anybody without a generation while the group is empty.

        Whatever it calls itself: a consumer that assigns its partitions itself says its `group.instance.id`, too.
        """
        if request.generation_id < 0 and group.state is State.EMPTY:
            return ErrorCode.NONE
        error = unknown_or_fenced(group, request.member_id, request.group_instance_id)
        if error == ErrorCode.NONE and request.generation_id != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        if error == ErrorCode.NONE and group.state is State.COMPLETING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def commit(self, group: ClassicGroup, request: OffsetCommitRequest) -> Sliced[OffsetCommitResponse]:
        """Write what may be written; the answer leaves when it is committed. The caller has asked `refusal`."""
        member = group.members.get(request.member_id)
        if member is not None:
            self._rebalance.hear(group, member)
        return self.write(request)

    def first_refusal(self, topics: Iterable[OffsetCommitTopic], allowed: Allowed) -> Sliced[ErrorCode]:
        """Of the first partition that may not be committed, for which the whole call is refused; NONE if there is none.

        A partition whose metadata is too large is not looked at: it is refused by itself (Kafka's
        `OffsetMetadataManager.commitOffset` and `commitTransactionalOffset`).
        """
        pace = Pace(CHECKS_A_STEP)
        for topic in topics:
            for one in topic.partitions:
                error = ErrorCode.NONE if self._is_too_large(one) else allowed(topic, one.index)
                if error != ErrorCode.NONE:
                    return error
                if pace.is_over():
                    yield
        return ErrorCode.NONE

    def _is_too_large(self, one: OffsetCommitPartition) -> bool:
        metadata = one.committed_metadata
        return bool(metadata) and utf16_units(metadata or "") > self._config.metadata_max_bytes

    def write(self, request: OffsetCommitRequest) -> Sliced[OffsetCommitResponse]:
        """Of a call that was not refused."""
        expire = NO_TIMESTAMP
        if request.retention_time_ms != BROKERS_RETENTION:
            expire = min(max(0, self._turn.wall_ms + request.retention_time_ms), LAST_TIME_MS)
        topics = yield from self._commit_each(request.group_id, request.topics, expire, None)
        return OffsetCommitResponse(topics=topics)

    def write_transactional(
        self, request: TxnOffsetCommitRequest, producer: Producer
    ) -> Sliced[TxnOffsetCommitResponse]:
        """Of a call that was not refused."""
        topics = yield from self._commit_each(request.group_id, request.topics, NO_TIMESTAMP, producer)
        return TxnOffsetCommitResponse(topics=topics)

    def _commit_each(
        self,
        group_id: str,
        topics: Iterable[OffsetCommitTopic],
        expire: int,
        producer: Producer | None,
    ) -> Sliced[tuple[OffsetCommitTopicResult, ...]]:
        """expire: when its committer wants it to be forgotten. producer: in whose transaction it is committed."""
        results, pace = [], Pace(COMMITS_A_STEP)
        writes: list[Write] = []  # of this step
        for topic in topics:
            write = self._writer(group_id, topic, expire, producer, writes)
            partitions = []
            for one in topic.partitions:
                partitions.append(OffsetCommitPartitionResult(index=one.index, error_code=write(one)))
                if pace.is_over():
                    self._append(group_id, writes)
                    yield
            self._append(group_id, writes)
            results.append(
                OffsetCommitTopicResult(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
            )
        return tuple(results)

    def _append(self, group_id: str, writes: list[Write]) -> None:
        self._turn.append_all(group_id, writes)
        self._turn.counts.offset_commits += len(writes)
        writes.clear()

    def _writer(
        self,
        group_id: str,
        topic: OffsetCommitTopic,
        expire: int,
        producer: Producer | None,
        writes: list[Write],
    ) -> Callable[[OffsetCommitPartition], ErrorCode]:
        """Adds the offset of one partition to `writes`. What the records of a topic have in common is made once.

        All that was added before has been appended: the table tells whether there is room for more. Where that is not
        sure, each is appended by itself.
        """
        name, wall_ms = topic.name, self._turn.wall_ms
        topic_id = topic.topic_id or ZERO_UUID
        begin, end = begin_of_keys(group_id, name), end_of(wall_ms, topic_id)
        most = self._config.max_offsets
        has_room = self._table.has_room(group_id, len(topic.partitions), most)

        def write(one: OffsetCommitPartition) -> ErrorCode:
            if topic_id in self._gone:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if self._is_too_large(one):
                return ErrorCode.OFFSET_METADATA_TOO_LARGE
            metadata = one.committed_metadata or ""
            if not has_room and not self._table.takes(group_id, (name, one.index), most):
                return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
            if expire == NO_TIMESTAMP:
                value = value_of(one.committed_offset, one.committed_leader_epoch, metadata.encode(), end)
            else:
                value = write_value(
                    OffsetCommitValue(
                        one.committed_offset, metadata, wall_ms, expire, one.committed_leader_epoch, topic_id
                    )
                )
            writes.append(Write(key_in(begin, one.index), value, producer))
            if not has_room:
                self._append(group_id, writes)
            return ErrorCode.NONE

        return write

    # --- fetch ---

    def fetch(self, call: Call, request: OffsetFetchGroup, *, require_stable: bool = False) -> Sliced[None]:
        """Of a group that does not exist, too: it has committed nothing.

        require_stable: an offset that an open transaction may still change is an error (KIP-447).
        """
        asked = None if request.topics is None else request.topics.topics
        number = self._table.count(request.group_id) if asked is None else sum(len(one.partitions) for one in asked)
        lasting = number >= UNITS_A_SLICE  # a transaction may end between two steps
        view = self._table.view(request.group_id, lasting=lasting)
        pace = Pace()
        if asked is None:
            asked = yield from self._all_of(view, pace)
        results: list[OffsetFetchTopicResult] = []
        for topic in asked:
            partitions: list[OffsetFetchPartition] = []
            for index in topic.partitions:
                found = _fetched(view, topic, index, require_stable)
                if found is not None:
                    partitions.append(found)
                elif request.topics is not None:
                    partitions.append(OffsetFetchPartition(index=index))
                if pace.is_over():
                    yield
            if request.topics is not None or partitions:
                results.append(
                    OffsetFetchTopicResult(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
                )
        response = OffsetFetchGroupResult(group_id=request.group_id, topics=tuple(results))
        self._turn.answer_read(request.group_id, call.number, response)

    def _all_of(self, view: View, pace: Pace) -> Sliced[tuple[OffsetFetchTopic, ...]]:
        """With the id of the topic that has the name now, if there is one."""
        found: dict[str, list[int]] = {}
        for rest in view.found:
            topic, index = topic_and_index(rest)
            found.setdefault(topic, []).append(index)
            if pace.is_over():
                yield
        topics = ((name, self._settings.cluster.topic(name), indexes) for name, indexes in found.items())
        return tuple(
            OffsetFetchTopic(name=name, topic_id=b"" if topic is None else topic.topic_id, partitions=tuple(indexes))
            for name, topic, indexes in topics
        )

    # --- delete ---

    def delete(self, group: ClassicGroup, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Offsets of topics that no member consumes. A group of another kind than consumers must be empty."""
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER:
            return OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
        return self.delete_unsubscribed(request, subscribed_topics(group))

    def delete_unsubscribed(
        self, request: OffsetDeleteRequest, subscribed: frozenset[str] | None
    ) -> OffsetDeleteResponse:
        """subscribed: None if any topic may be subscribed to."""
        return OffsetDeleteResponse(
            topics=tuple(
                OffsetDeleteTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        OffsetDeletePartition(
                            index=index,
                            error_code=self._delete_one(request.group_id, (topic.name, index), subscribed),
                        )
                        for index in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _delete_one(self, group_id: str, partition: Partition, subscribed: frozenset[str] | None) -> ErrorCode:
        if subscribed is None or partition[0] in subscribed:
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        if self._table.has(group_id, partition) or self._table.pending.has(group_id, partition):
            self._delete(group_id, rest_of(*partition))
        return ErrorCode.NONE

    def delete_all(self, group_id: str, pace: Pace) -> Sliced[None]:
        """Pending ones, too: their transactions would bring the group back."""
        for rest in self._table.partitions(group_id):
            self._delete(group_id, rest)
            if pace.is_over():
                yield
        for partition in self._table.pending.of(group_id):
            self._delete(group_id, rest_of(*partition))
            if pace.is_over():
                yield

    def topic_gone(self, topic_id: bytes) -> None:
        """Nothing is written for it from here on, whatever a call that is on its way has found."""
        self._gone[topic_id] = None
        while len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]

    def delete_topic(self, group_id: str, topic: str, topic_id: bytes, pace: Pace) -> Sliced[None]:
        """Also what open transactions hold: their markers would bring it back. A tombstone takes all that a partition
        has, so it is not written where something is of the topic that has the name now. That is the newer one, and wins
        when the transaction ends."""
        former = (ZERO_UUID, topic_id)
        pending = (rest_of(*one) for one in self._table.pending.of(group_id) if one[0] == topic)
        for rest in dict.fromkeys((*self._table.partitions(group_id, topic), *pending)):
            values = self._table.values(group_id, rest)
            if values and all(value.topic_id in former for value in values):
                self._delete(group_id, rest)
            if pace.is_over():
                yield

    def _delete(self, group_id: str, rest: bytes) -> None:
        self._turn.append(group_id, key_of(group_id.encode(), rest), None)

    # --- expiry ---

    def delete_expired(self, group_id: str, kept: Callable[[], Kept], pace: Pace) -> Sliced[None]:
        """Take the offsets that are no longer kept (KIP-211).

        They are kept while a member consumes their topic, and for the retention from when the group became empty, or
        from the commit where no protocol has the group. One that a transaction is about to replace is kept, too.
        kept: asked again in each step, since members come and go.
        """
        subscribed, empty_since = kept()
        for rest in self._table.partitions(group_id):
            if subscribed is None:
                return
            partition = topic_and_index(rest)
            value = self._table.value(group_id, rest)
            if (
                value is not None
                and partition[0] not in subscribed
                and not self._table.pending.has(group_id, partition)
                and self._turn.wall_ms >= self._expires_at(value, empty_since)
            ):
                self._delete(group_id, rest)
            if pace.is_over():
                yield
                subscribed, empty_since = kept()

    def _expires_at(self, value: OffsetCommitValue, empty_since: int | None) -> int:
        if value.expire_timestamp != NO_TIMESTAMP:
            return value.expire_timestamp
        since = value.commit_timestamp if empty_since is None else empty_since
        return since + self._config.offsets_retention_ms


def everything(_topic: OffsetCommitTopic, _index: int) -> ErrorCode:
    return ErrorCode.NONE


def empty_since(group: ClassicGroup) -> int | None:
    """When a classic group has lost its last member, in ms since 1970. None: it has members, or it never had any."""
    if group.state is State.EMPTY and group.protocol_type is not None and group.state_timestamp >= 0:
        return group.state_timestamp
    return None


def _fetched(view: View, topic: OffsetFetchTopic, index: int, require_stable: bool) -> OffsetFetchPartition | None:
    """None: nothing is committed for this topic."""
    if require_stable and (topic.name, index) in view.pending:
        return OffsetFetchPartition(index=index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    value = view.get(topic.name, index)
    if value is None or _is_of_another(value, topic.topic_id):
        return None
    return OffsetFetchPartition(
        index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def utf16_units(text: str) -> int:
    """The length that Java's clients and brokers count."""
    return len(text) + sum(ord(character) > 0xFFFF for character in text)


def _is_of_another(value: OffsetCommitValue, topic_id: bytes) -> bool:
    """The topic was deleted and made again since."""
    return bool(topic_id) and value.topic_id not in (ZERO_UUID, topic_id)
