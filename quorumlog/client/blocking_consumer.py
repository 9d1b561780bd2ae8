"""Written by `proto/generate_blocking.py` from `AsyncConsumer`; change that one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from quorumlog.client.handover.consumer import CallbackConsumer
from quorumlog.client.handover.loop import on_loop

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorumlog.client.cluster.metadata_cache import LeaderPlace, TopicLife
    from quorumlog.client.consumer import AsyncConsumer, Offsets, Start
    from quorumlog.client.group.offsets import CommittedOffset
    from quorumlog.client.group_metadata import GroupMetadata
    from quorumlog.client.offsets import FoundOffset
    from quorumlog.ids import Epoch, Offset, TopicPartition


class Consumer(CallbackConsumer):
    """See AsyncConsumer. Iterating gives records. One thread polls; `wakeup` and `close` may come from another one.

    connect: makes its transport, on the clients' loop; None: `edge.make_transport`.
    """

    _client: AsyncConsumer

    def assign(
        self,
        partitions: Iterable[tuple[str, int, Start]],
        *,
        stop: Start | Mapping[TopicPartition, Offset] | None = None,
        lives: Mapping[str, TopicLife] | None = None,
        epochs: Mapping[TopicPartition, Epoch] | None = None,
        leaders: Mapping[TopicPartition, LeaderPlace] | None = None,
    ) -> None:
        """Read these partitions, each from its start. Replaces the previous assignment.

        stop: exclusive end of each partition, resolved now ("latest": what is readable at this moment), or offsets by
        partition. Iteration ends there. lives: by topic, the life that the starts belong to; of the others, the one
        that has the name now. If a topic was made again since, a poll raises TopicReplaced. epochs: leader epochs of
        the records before the starts: if such a record was truncated since (KIP-101), the reader starts over as
        `auto_offset_reset` says. leaders: of topics in `lives`, as somebody else has heard: they are asked at once, and
        nobody is asked for metadata before.
        """
        self._run(self._client.assign(list(partitions), stop=stop, lives=lives, epochs=epochs, leaders=leaders))

    def assign_topic(
        self, topics: str | Iterable[str], start: Start = "earliest", *, stop: Start | None = None
    ) -> None:
        """Assign every partition that the topic, or each topic, has now."""
        self._run(self._client.assign_topic(topics, start, stop=stop))

    def unsubscribe(self) -> None:
        """Give up all partitions, after an automatic commit if there is one, and leave the group."""
        self._run(self._client.unsubscribe())

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions that the topic has now. It is not made. Raises NoSuchTopic, RequestFailed, RpcError."""
        return self._thread.run(self._client.partitions_for(topic))

    def offset_ranges(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[FoundOffset, FoundOffset]]:
        """The first offset of each partition and the end (exclusive) of what this consumer may read of it."""
        return self._thread.run(self._client.offset_ranges(list(partitions)))

    def offsets_for_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        """The first offset whose record is not older than this time, in ms since 1970; -1 where there is none."""
        return self._thread.run(self._client.offsets_for_times(wanted))

    @property
    def assignment(self) -> list[TopicPartition]:
        """The partitions that it reads now."""
        return self._thread.run(on_loop(lambda: self._client.assignment))

    @property
    def subscription(self) -> list[str]:
        return self._thread.run(on_loop(lambda: self._client.subscription))

    def group_metadata(self) -> GroupMetadata:
        """Which member it is now, for `Producer.send_offsets`. One that assigns itself is none, and is not checked.

        Raises CommitFailed if it has lost its place in the group.
        """
        return self._thread.run(on_loop(self._client.group_metadata))

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit what polls have returned, or these offsets. They are durable when it returns.

        Raises CommitFailed if the partitions were given to another member, or another one has its instance id;
        ConfigError for what is no offset, RequestFailed, RpcError.
        """
        self._thread.run(self._client.commit(offsets))

    def committed(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed for these, or for what this consumer reads; without those that have nothing."""
        return self._thread.run(self._client.committed(list(partitions) if partitions is not None else None))

    def position(self, topic: str, partition: int) -> Offset:
        """Of the next record that a poll returns. Waits for the first one: the committed offset is fetched.

        Raises NotAssigned, and if there is no first one, NoCommittedOffset, Unavailable, RequestFailed, RpcError.
        """
        return self._thread.run(self._client.position(topic, partition))

    def seek(self, topic: str, partition: int, start: Start) -> None:
        """Read on from there: the next poll returns that record. Raises NotAssigned.

        Raises TopicReplaced once, and seeks nothing, if the topic was made again and no poll has said so yet.
        """
        self._thread.run(self._client.seek(topic, partition, start))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Polls return nothing of these until `resume`; what was fetched ahead is dropped. Raises NotAssigned."""
        self._thread.run(on_loop(partial(self._client.pause, list(partitions))))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._thread.run(on_loop(partial(self._client.resume, list(partitions))))

    @property
    def paused(self) -> list[TopicPartition]:
        return self._thread.run(on_loop(lambda: self._client.paused))

    def lag(self, topic: str, partition: int) -> int:
        """Offsets between the next record of a poll and the last known end of what it may read; -1: not known yet.

        That end is the high watermark, or with read_committed the last stable offset. Raises NotAssigned.
        """
        return self._client.lag(topic, partition)

    def metrics(self) -> dict[str, int]:
        """What this consumer counts, read now; by Kafka's names where it has them, with the unit in the name.

        records-consumed-total: of polls and iteration; bytes-consumed-total: of whole batches, markers included.
        records-lag-max: the largest `lag`, in offsets; -1: none is known.
        """
        return self._thread.run(on_loop(self._client.metrics))

    @property
    def finished(self) -> bool:
        """True once everything before the stop offsets has been taken."""
        return self._client.finished
