"""A transaction that is open already when its producer is made: somebody else has begun it, and ends it."""

from __future__ import annotations

from typing import NamedTuple


class BegunTransaction(NamedTuple):
    """transaction_version: level of the feature with which it was begun; from 2 on leaders add its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int
