"""The connector's requests to the cluster, through the blocking clients: the offsets to read, and their batches.

Asks the cluster for what a plan needs, and asks again where it did not answer, as Spark's Kafka source does.

Every try begins with a new client: the old one may hold on to brokers that are gone. A mistake of the user is told at
once.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from quorumlog.client.administration.ranges import RangeQuery
from quorumlog.client.blocking_admin import Admin
from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.errors import ConfigError, NoProtocol, RequestFailed, TopicReplaced, Unavailable
from quorumlog.client.fetching.position import Chunk
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.offsets import EARLIEST, FoundOffset
from quorumlog.client.options import CommonOptions, ConsumerOptions, parse_options
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset, TopicPartition
from quorumlog.messages.cluster import TopicMetadata
from quorumlog.spark.read.options import ReadOptions, Subscription
from quorumlog.spark.read.places import Place, TimePlace
from quorumlog.spark.read.planning import DescribedLog, LogSpan, PartitionRange, found_by_time, times_of
from quorumlog.spark.session.kept_connections import Lease

INSTEAD = {"maxBytesPerPartition": "maxRecordsPerPartition", "maxBytesPerTrigger": "maxOffsetsPerTrigger"}


def make_admin(options: ReadOptions) -> Admin:
    """An admin client with those of the reader's options that it knows."""
    return Admin(common_options(options.client))


def common_options(client: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a consumer's options that every client knows."""
    parsed = parse_options(ConsumerOptions, client, {})
    return {name: getattr(parsed, name) for name in CommonOptions.__dataclass_fields__}


def read_spans(admin: Admin, options: ReadOptions) -> list[LogSpan]:
    """Every partition of the subscription with its current offsets. Raises ConfigError if a topic does not exist.

    The end is that of what the options allow to read: with read_committed, the last stable offset.
    """
    subscription = options.subscription
    partitions: list[TopicPartition] = []
    for topic in _topics(admin, subscription):
        existing = [partition.index for partition in topic.partitions]
        partitions += [(topic.name, index) for index in _wanted(subscription, topic, existing)]
    return spans_of(admin, partitions, options)


def spans_of(admin: Admin, partitions: Sequence[TopicPartition], options: ReadOptions) -> list[LogSpan]:
    """Raises TopicReplaced if a topic is made again between two questions."""
    if not partitions:
        return []
    found = admin.list_offset_ranges(partitions, isolation_level=_isolation(options))
    return [_span(admin, key, *found[key]) for key in partitions]


def place_of(admin: Admin, place: Place | TimePlace, spans: Sequence[LogSpan], options: ReadOptions) -> Place:
    """Looks times up. Raises ConfigError where a partition has no record at or after its time."""
    if not isinstance(place, TimePlace):
        return place
    if not spans:
        return EARLIEST  # of nothing
    found = admin.list_offsets(times_of(place, spans), isolation_level=_isolation(options))
    for span in spans:
        topic_id = found[span.topic, span.partition].topic_id
        if topic_id != span.topic_id:
            raise TopicReplaced(span.topic, span.topic_id, topic_id)
    return found_by_time(place, spans, {key: one.offset for key, one in found.items()})


def _isolation(options: ReadOptions) -> str:
    return str(options.client["isolation_level"])


def _span(admin: Admin, key: TopicPartition, start: FoundOffset, end: FoundOffset) -> LogSpan:
    topic, index = key
    if start.topic_id != end.topic_id:
        raise TopicReplaced(topic, start.topic_id, end.topic_id)
    return LogSpan(
        topic=topic,
        topic_id=end.topic_id,
        partition=index,
        start=start.offset,
        end=max(start.offset, end.offset),
        metadata_offset=admin.topic_life(topic).metadata_offset,
        end_epoch=end.leader_epoch,
        leader=admin.leader_of(topic, index),
    )


def commit_offsets(admin: Admin, group_id: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """For tools that show how far a group is. Raises RequestFailed for the first offset that is refused, as they are
    while the group has members."""
    given = {key: CommittedOffset(offset) for key, offset in offsets.items()}
    for (topic, partition), code in admin.alter_group_offsets(group_id, given).items():
        if code is not ErrorCode.NONE:
            raise RequestFailed(code, f"the offset of {topic}-{partition}")


class OpenCluster:
    """What plans ask (`streaming.StreamCluster`), by one client, which connects when it is first asked."""

    def __init__(self, options: ReadOptions, make: Callable[[ReadOptions], Admin] = make_admin) -> None:
        self._options = options
        self._make = make
        self._open: Admin | None = None

    @property
    def _admin(self) -> Admin:
        if self._open is None:
            self._open = self._make(self._options)
        return self._open

    def cluster_id(self) -> str:
        return self._asked(lambda: self._admin.describe_cluster().cluster_id)

    def spans(self) -> list[LogSpan]:
        return self._asked(lambda: read_spans(self._admin, self._options))

    def place(self, place: Place | TimePlace, spans: list[LogSpan]) -> Place:
        return self._asked(lambda: place_of(self._admin, place, spans, self._options))

    def ranges(self, option: str, wanted: Mapping[TopicPartition, RangeQuery]) -> DescribedLog:
        """Raises ConfigError, with this option, for a cluster that cannot say it."""
        isolation = _isolation(self._options)
        try:
            return self._asked(lambda: self._admin.describe_ranges(wanted, isolation_level=isolation))
        except NoProtocol as error:
            raise ConfigError(
                f"{option} needs a cluster of quorumlog, reached by gRPC: Apache Kafka does not say how many bytes "
                f"which offsets take; use {INSTEAD[option]} ({error})"
            ) from error

    def pinned(self, pin_id: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        from quorumlog.client.blocking import Cluster
        from quorumlog.spark.read.pins import Pins

        with Cluster(**common_options(self._options.client)) as cluster:
            return Pins(cluster).keep(pin_id, make)

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        commit_offsets(self._admin, group_id, offsets)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        options = self._options
        return asked(
            ask, tries=options.offset_tries, interval_ms=options.offset_retry_interval_ms, begin_anew=self.close
        )


class ClusterSource:
    """The source of one task. It connects here, in the worker, so that no connection crosses a fork. Its client is of
    this task only, over connections that the worker keeps (kept_connections.py).

    It reads the topic of the plan, whatever has its name in the metadata of the broker that it asks.
    """

    def __init__(self, wanted: PartitionRange, options: ReadOptions) -> None:
        self._wanted = wanted
        self._options = options
        self._leader = wanted.leader  # of the plan; after a refusal metadata are asked for
        self._lease = Lease(options.keep_connections_ms)
        self._consumer = Consumer({**options.client, "auto_offset_reset": "none"}, connect=self._lease.of_kind)

    def __enter__(self) -> ClusterSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._lease.spoil()
        self._consumer.close()

    def span(self) -> LogSpan:
        wanted = self._wanted
        with make_admin(self._options) as admin:
            admin.learn(wanted.topic, wanted.life)
            _describe(admin, [wanted.topic])
            (span,) = spans_of(admin, [(wanted.topic, wanted.partition)], self._options)
            return span

    def seek(self, start: Offset, epoch: Epoch = NO_EPOCH) -> None:
        wanted = self._wanted
        key, leader, self._leader = (wanted.topic, wanted.partition), self._leader, None
        self._consumer.assign(
            [(*key, start)],
            stop=wanted.end,
            lives={wanted.topic: wanted.life},
            epochs={key: epoch},
            leaders={key: leader} if leader is not None else {},
        )

    def next_chunk(self, timeout_ms: int) -> Chunk | None:
        try:
            return self._consumer.next_chunk(timeout_ms)
        except NoProtocol as error:
            raise NoProtocol(f"option transport: {error}; set it to auto, or to lane for Kafka's protocol") from error


def _topics(admin: Admin, subscription: Subscription) -> list[TopicMetadata]:
    if subscription.pattern:
        pattern = re.compile(subscription.pattern)
        return [topic for topic in admin.list_topics() if pattern.search(topic.name) and not topic.is_internal]
    return _describe(admin, list(subscription.assigned or subscription.names))


def _describe(admin: Admin, names: list[str]) -> list[TopicMetadata]:
    found = admin.describe_topics(names)
    for topic in found:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ConfigError(f"topic {topic.name!r} does not exist")
        if topic.error_code != ErrorCode.NONE:
            raise RequestFailed(ErrorCode(topic.error_code), f"topic {topic.name!r}: {topic.error_message}")
    return found


def _wanted(subscription: Subscription, topic: TopicMetadata, existing: list[int]) -> list[int]:
    if subscription.assigned is None:
        return existing
    wanted: Any = subscription.assigned[topic.name]
    missing = [index for index in wanted if index not in existing]
    if missing:
        raise ConfigError(f"assign: topic {topic.name!r} has partitions 0 to {len(existing) - 1}, not {missing[0]}")
    return list(wanted)


Answer = TypeVar("Answer")


def asked(
    ask: Callable[[], Answer],
    *,
    tries: int,
    interval_ms: int,
    begin_anew: Callable[[], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """What `ask` returns. Raises what the last of `tries` raised, and every error that time does not mend.

    interval_ms: before each further try. sleep: takes seconds.
    """
    for left in range(tries - 1, 0, -1):
        try:
            return ask()
        except (Unavailable, RequestFailed, TopicReplaced) as error:
            if isinstance(error, NoProtocol):
                raise
            warnings.warn(f"the cluster did not say what there is, {left} more tries: {error}", stacklevel=2)
        begin_anew()
        sleep(interval_ms / 1000)
    return ask()
