"""Written by `proto/generate_blocking.py` from `AsyncProducer`; change that one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog.client.handover.loop import on_loop
from quorumlog.client.handover.producer import QueueingProducer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorumlog.client.batches.numbering import Identity
    from quorumlog.client.cluster.topic_limit import BatchLimit
    from quorumlog.client.group_metadata import GroupMetadata
    from quorumlog.client.producer import AsyncProducer
    from quorumlog.ids import Uuid


class Producer(QueueingProducer):
    """See AsyncProducer. `send` only appends to a queue; the loop takes many records from it at a time."""

    _client: AsyncProducer

    def metrics(self) -> dict[str, int]:
        """What this producer counts, read now; by Kafka's names where it has them, with the unit in the name.

        A record that was acknowledged or has failed counts once; record-retry-total counts each further try of it.
        """
        return self._thread.run(on_loop(self._client.metrics))

    def topic_id(self, topic: str) -> Uuid:
        """Of the last topic of this name that this client knows, into which it sends; empty: the cluster has no ids."""
        return self._thread.run(self._client.topic_id(topic))

    def is_ours(self, topic: str) -> bool:
        """True if a broker of quorumlog told the topic's metadata: Apache Kafka does not say how new they are.

        Only of a client that asks by gRPC: the lane is Kafka's protocol on both sides.
        """
        return self._thread.run(self._client.is_ours(topic))

    def batch_limit(self, topic: str) -> BatchLimit:
        """What the topic takes at most at once. NO_LIMIT if the cluster does not say."""
        return self._thread.run(self._client.batch_limit(topic))

    def init_transactions(self) -> None:
        """Fence earlier producers of this transactional id, and end their transaction. The first `begin` does it, too.

        Raises TransactionTimeout, FatalTransactionError.
        """
        self._thread.run(self._client.init_transactions())

    @property
    def identity(self) -> Identity:
        """Producer id and epoch, once `init_transactions` has returned."""
        return self._client.identity

    def begin(self) -> None:
        """Raises TransactionStateError if a transaction is open, and what `init_transactions` raises."""
        self._thread.run(self._client.begin())

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: GroupMetadata) -> None:
        """Commit a consumer group's offsets with the transaction. offsets: by topic and partition, the next to read.

        group: `consumer.group_metadata()`; a member that the group has replaced is refused (KIP-447).
        Raises TransactionFailed (abort it), FatalTransactionError, TransactionStateError, ConfigError.
        """
        self._thread.run(self._client.send_offsets(offsets, group))
