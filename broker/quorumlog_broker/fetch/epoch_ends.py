"""Where an epoch ends in the log of its partition's leader (OffsetForLeaderEpoch, KIP-101, KIP-320): a reader finds out
by it whether the records that it has read are still in the log. A fetch is answered by the same epochs
(`quorumlog_storage/rules/fetch_rule.py`)."""

from __future__ import annotations

from quorumlog.ids import NO_EPOCH, Epoch
from quorumlog.messages.fetch import EpochPartitionResult
from quorumlog_broker.replicas.replica import Replica


def end_of_epoch(replica: Replica, index: int, epoch: Epoch, current_leader_epoch: Epoch) -> EpochPartitionResult:
    """Epoch and end offset are -1 if the log does not know the epoch, nor one before it.

    current_leader_epoch: NO_EPOCH asks for no check. Raises ApiError.
    """
    log = replica.leading(None if current_leader_epoch == NO_EPOCH else current_leader_epoch)
    if epoch == replica.core.leader_epoch:
        return EpochPartitionResult(index=index, leader_epoch=epoch, end_offset=log.end_offset)
    found = log.epochs.end_offset_for(epoch, log.end_offset)
    if found is None:
        return EpochPartitionResult(index=index)
    return EpochPartitionResult(index=index, leader_epoch=found.epoch, end_offset=found.end_offset)
