"""Calls to the two clusters of a mirror, by the blocking clients. What they decide is decided in the cores."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from quorumlog.client.admin import NewTopic
from quorumlog.client.blocking import Cluster, Producer
from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset, TopicPartition, show_uuid
from quorumlog.messages.cluster import TopicMetadata
from quorumlog.spark.mirror import records as entries
from quorumlog.spark.mirror.origin import Home, Origin, origin_of
from quorumlog.spark.mirror.records import Entries, Entry, Returned, entry_record, read_entries, returned_record
from quorumlog.spark.mirror.topics import TopicChange, TopicShape

OF_THE_TOPIC = 1  # DescribedConfig.source: set on the topic itself
POLL_MS = 200
READ_TIMEOUT_S = 60.0  # for one piece of a log to be read
MAX_LOOKED_AT = 2_000_000  # records of one partition, to find where one group is in it
PROBE_BYTES = 64 * 1024  # of an answer to a search, which needs one record of it
MADE_AT_ONCE = 200  # topics of one request
COMPACTED = {"cleanup.policy": "compact"}


class SearchTooLong(QuorumlogError):
    """A partition has too many records among which copies are looked for."""


class LogUnreadable(QuorumlogError):
    """A part of a log was not read in time."""


@dataclass
class MirrorSide:
    """One of the two clusters. client: of it; it is closed by who made it."""

    alias: str
    client: Cluster
    cluster_id: str = ""
    _reader: Consumer | None = field(default=None, repr=False)
    _producer: Producer | None = field(default=None, repr=False)

    def learn_id(self) -> None:
        self.cluster_id = self.client.admin.describe_cluster().cluster_id

    def topics(self) -> dict[str, TopicMetadata]:
        return {topic.name: topic for topic in self.client.admin.list_topics() if not topic.is_internal}

    def shapes(self, topics: Iterable[TopicMetadata]) -> dict[str, TopicShape]:
        """With their settings. A topic that has just gone is left out."""
        by_name = {topic.name: topic for topic in topics}
        found = self.client.admin.describe_topics_configs(by_name)
        return {
            name: TopicShape(
                partitions=len(by_name[name].partitions),
                replication=max(len(by_name[name].partitions[0].replicas), 1) if by_name[name].partitions else 1,
                own={one.name: one.value or "" for one in described.configs if one.source == OF_THE_TOPIC},
                known=frozenset(one.name for one in described.configs),
            )
            for name, described in found.items()
        }

    def make(self, shapes: Mapping[str, TopicShape], settings: Mapping[str, Mapping[str, str]]) -> None:
        """By topic: partitions and settings. Replicas as on the source, but no more than there are brokers."""
        if not shapes:
            return
        brokers = len(self.client.admin.describe_cluster().brokers)
        wanted = sorted(shapes)
        for first in range(0, len(wanted), MADE_AT_ONCE):
            new = [
                NewTopic(
                    name=name, partitions=shapes[name].partitions, configs=settings[name],
                    replication=min(shapes[name].replication, brokers),
                )
                for name in wanted[first : first + MADE_AT_ONCE]
            ]  # fmt: skip
            for result in self.client.admin.create_topics(new):
                if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    text = f"topic {result.name!r} could not be made: {result.error_message or ''}"
                    raise RequestFailed(ErrorCode(result.error_code), text)

    def known_settings(self, topics: Mapping[str, TopicMetadata]) -> frozenset[str]:
        """Names of settings that this cluster knows; empty if it has no topic to ask for. topics: of it."""
        if not topics:
            return frozenset()
        return frozenset(next(iter(self.shapes([topics[min(topics)]]).values()), TopicShape(partitions=0)).known)

    def change(self, topic: str, change: TopicChange) -> None:
        if change.partitions:
            self.client.admin.create_partitions(topic, change.partitions)
        if change.settings:
            self.client.admin.alter_configs(topic, change.settings)

    def entries(self) -> Entries:
        """Which topics of this cluster hold copies."""
        if entries.TOPIC not in self.topics():
            return Entries()
        end = self._end(entries.TOPIC)
        pairs: list[tuple[bytes | None, bytes | None]] = []
        reader = self.reader()
        reader.assign([(entries.TOPIC, 0, "earliest")], stop=end)
        deadline = time.monotonic() + READ_TIMEOUT_S
        while not reader.finished:
            if time.monotonic() > deadline:
                raise LogUnreadable(f"topic {entries.TOPIC} was not read to its end at {end} in {READ_TIMEOUT_S} s")
            pairs += [(record.key, record.value) for record in reader.poll(timeout_ms=POLL_MS)]
        return read_entries(pairs)

    def add_entries(self, new: Sequence[Entry]) -> None:
        """They are acknowledged when it returns."""
        if new:
            self.keep(entries.TOPIC, [entry_record(entry) for entry in new])

    def keep(self, topic: str, records: Sequence[tuple[bytes | str, bytes | str]]) -> None:
        """Records of the mirror's own, in a compacted topic of one partition, which is made if it is not there."""
        if not records:
            return
        if topic not in self.topics():
            brokers = len(self.client.admin.describe_cluster().brokers)
            self.client.admin.create_topic(topic, 1, min(3, brokers), configs=COMPACTED, exist_ok=True)
        if self._producer is None:
            self._producer = self.client.producer()
        try:
            sent = [self._producer.send(topic, value, key=key, partition=0) for key, value in records]
            for one in sent:
                one.result(READ_TIMEOUT_S)
        except BaseException:
            self._producer.abandon()  # the next records get another one
            self._producer = None
            raise

    def add_returned(self, new: Sequence[Returned]) -> None:
        """Widens what is there already."""
        known = self.entries().returned
        wider = [one.joined(known.get((one.topic, one.cluster_id))) for one in new]
        changed = [one for one in wider if known.get((one.topic, one.cluster_id)) != one]
        self.keep(entries.TOPIC, [returned_record(one) for one in changed])

    def ends(self, topics: Iterable[TopicMetadata]) -> dict[str, dict[int, Offset]]:
        """Of each partition, the end of its log, whoever can read it."""
        return self._places(topics, LATEST)

    def starts(self, topics: Iterable[TopicMetadata]) -> dict[str, dict[int, Offset]]:
        """Of each partition, the first offset that is still in its log."""
        return self._places(topics, EARLIEST)

    def _places(self, topics: Iterable[TopicMetadata], which: int) -> dict[str, dict[int, Offset]]:
        keys = [(topic.name, part.index) for topic in topics for part in topic.partitions]
        found: dict[str, dict[int, Offset]] = {}
        for (name, index), one in (self.client.admin.list_offsets(dict.fromkeys(keys, which)) if keys else {}).items():
            found.setdefault(name, {})[index] = one.offset
        return found

    def logs(
        self, topics: Mapping[str, TopicMetadata], keys: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ReadLog]:
        """As committed readers see them now; all leaders are asked at once."""
        wanted = list(keys)
        if not wanted:
            return {}
        found = self.client.admin.list_offset_ranges(wanted, isolation_level="read_committed")
        made = {}
        for key, (first, last) in found.items():
            topic_id = show_uuid(topics[key[0]].topic_id)
            home = Home(self.cluster_id, topic_id, key[1])
            made[key] = ReadLog(self, key, home, topic_id, first.offset, max(first.offset, last.offset))
        return made

    def log(self, topic: TopicMetadata, partition: int) -> ReadLog:
        """One of `logs`."""
        key = (topic.name, partition)
        return self.logs({topic.name: topic}, [key])[key]

    def reader(self) -> Consumer:
        """One for all searches, which come one after the other."""
        if self._reader is None:
            self._reader = self.client.consumer(
                isolation_level="read_committed",
                max_partition_fetch_bytes=PROBE_BYTES,
                prefetch_bytes=PROBE_BYTES,
                prefetch_chunks=1,
            )
        return self._reader

    def _end(self, topic: str) -> Offset:
        return self.client.admin.list_offsets({(topic, 0): LATEST}, isolation_level="read_committed")[topic, 0].offset


@dataclass
class ReadLog:
    """`translation.Log`, read when it is asked for."""

    side: MirrorSide
    key: TopicPartition
    home: Home
    topic_id: str
    start: Offset
    end: Offset
    looked_at: int = 0

    def records(self, start: Offset, end: Offset) -> Iterator[tuple[Offset, Origin | None]]:
        """Raises SearchTooLong, LogUnreadable."""
        start, end = max(start, self.start), min(end, self.end)
        if start >= end:
            return
        reader = self.side.reader()
        reader.assign([(*self.key, start)], stop=end)
        deadline = time.monotonic() + READ_TIMEOUT_S
        while not reader.finished:
            found = reader.poll(timeout_ms=POLL_MS)
            if found:
                deadline = time.monotonic() + READ_TIMEOUT_S
            elif time.monotonic() > deadline:
                raise LogUnreadable(
                    f"{self.key[0]}-{self.key[1]} was not read from {start} to {end} in {READ_TIMEOUT_S} s"
                )
            for record in found:
                self.looked_at += 1
                if self.looked_at > MAX_LOOKED_AT:
                    raise SearchTooLong(
                        f"{self.key[0]}-{self.key[1]}: no copy among {MAX_LOOKED_AT} records; too many others were "
                        "written between them"
                    )
                yield record.offset, origin_of(record.headers, self.topic_id)
