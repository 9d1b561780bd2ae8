"""How far an application has read: what a poll has returned counts, whatever was fetched ahead."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.client.cluster.metadata_cache import NO_ID
from quorumlog.client.fetching.position import Chunk
from quorumlog.ids import NO_EPOCH, Epoch, Offset, TopicPartition, Uuid


class ReadTo(NamedTuple):
    """offset: of the next record. leader_epoch: of the record before it; -1 if unknown.

    topic_id: of the topic that was read; empty if unknown.
    """

    offset: Offset
    leader_epoch: Epoch = NO_EPOCH
    topic_id: Uuid = NO_ID


class Progress:
    def __init__(self) -> None:
        self.read_to: dict[TopicPartition, ReadTo] = {}

    def start(self, key: TopicPartition, offset: Offset, epoch: Epoch = NO_EPOCH, topic_id: Uuid = NO_ID) -> None:
        self.read_to[key] = ReadTo(offset, epoch, topic_id)

    def gave(self, chunk: Chunk, offset: Offset) -> None:
        """The record of the chunk at this offset, and all before it."""
        self.read_to[chunk.topic, chunk.partition] = ReadTo(offset + 1, topic_id=chunk.topic_id)

    def gave_all(self, chunk: Chunk) -> None:
        """Also what no application sees: markers, and aborted records."""
        last = chunk.stop_offset == chunk.next_offset
        epoch = chunk.last_epoch if last else NO_EPOCH
        self.read_to[chunk.topic, chunk.partition] = ReadTo(chunk.stop_offset, epoch, chunk.topic_id)

    def forget(self, key: TopicPartition) -> None:
        self.read_to.pop(key, None)
