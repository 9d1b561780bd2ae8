"""What a transaction coordinator asks of the leader of a partition: verified batches, and markers that end them.

The way of a transactional batch (KIP-890, part 1): `ProducePath.begin_verification` gives the guard; the coordinator is
asked whether the transaction is under way; `ProducePath.append` takes the batch with the guard as `Verified`. Without
that no batch of a transaction is appended, since nobody could end it.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Epoch
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog_storage.producers.verification import Guard


class Verified(NamedTuple):
    """The coordinator vouches for the transaction of a batch. guard: None where one was open already."""

    guard: Guard | None


class EndTransaction(NamedTuple):
    """A decision that a coordinator has made durable. transaction_version: the coordinator's; from 2 on each
    transaction has a producer epoch of its own."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: Epoch
    transaction_version: int = 0

    @property
    def marker(self) -> EndTxnMarker:
        return EndTxnMarker(self.committed, self.coordinator_epoch)

    def batch(self, now_ms: int) -> bytes:
        """The control batch, at offset 0. now_ms: wall clock."""
        return control_batch(
            [self.marker],
            base_offset=0,
            timestamp_ms=now_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
        )
