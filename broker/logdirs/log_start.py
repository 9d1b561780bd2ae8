"""Moving the start of a log, in its directory's worker: noted durably first, so that deleted records stay deleted."""

from __future__ import annotations

from collections.abc import Sequence

from broker.logdirs.hosted_replica import HostedReplica
from quorumlog.ids import Offset
from storage.batch import StoredBatch
from storage.log import Log


def raise_start(replica: HostedReplica, log: Log, offset: Offset) -> Offset:
    """Remove what lies before `offset`, at most the log's end. The log's start afterwards."""
    _note(replica, offset)
    log.advance_start(offset)
    return log.start_offset


def begin_inside(replica: HostedReplica, log: Log, batches: Sequence[StoredBatch]) -> None:
    """Fill an empty log whose start lies inside the first of `batches`: records were deleted up to there.

    The batch is kept whole, below the start. Durable, where the topic asks for that.
    """
    assert replica.queue is not None
    start = log.start_offset
    assert log.end_offset == start and batches[0].base_offset < start < batches[0].next_offset
    _note(replica, start)
    replica.queue.directory.recovery_points.lower(log.path, 0)
    log.truncate_fully(batches[0].base_offset)
    log.append(batches, gaps=True)
    log.advance_start(start)
    if log.must_sync:
        log.sync()


def _note(replica: HostedReplica, offset: Offset) -> None:
    assert replica.queue is not None
    replica.queue.log_starts.raise_to((replica.topic, replica.key[1]), offset)
