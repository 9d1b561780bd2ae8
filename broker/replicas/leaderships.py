"""From a decision of the metadata to a log that is ready for it: opened, its epoch assigned, all older work behind it.

Runs as one job in the directory's worker, behind every append that an earlier leadership has queued. An answer for an
epoch that is over is told to the core, which ignores it; its successor has queued its own job already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.logdirs.partition_files import open_log
from broker.partition.events import LogReady
from broker.partition.key import PartitionKey
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica, Step, log_config
from quorumlog.ids import Epoch, Offset
from storage.checkpoint import TopicPartition
from storage.log import Log


@dataclass(frozen=True, slots=True)
class _Ready:
    log: Log
    log_start: Offset
    end_offset: Offset
    synced_end: Offset
    epoch_start: Offset


class Leaderships:
    def __init__(
        self,
        registry: Registry,
        step: Step,
        *,
        high_watermarks: Mapping[TopicPartition, Offset],
        follow: Callable[[Replica], None],
        settled: Callable[[PartitionKey], None],
    ) -> None:
        """high_watermarks: checkpointed ones of all directories. follow: the log is ready to be fetched into.

        settled: the log is open, though perhaps for an epoch that is over, or it cannot be opened.
        """
        self._registry = registry
        self._step = step
        self._high_watermarks = high_watermarks
        self._follow = follow
        self._settled = settled
        self._closed = False

    def close(self) -> None:
        self._closed = True

    def open(self, replica: Replica) -> None:
        """Open the log of a replica that has no leader epoch yet; the core learns where it ends."""
        self.prepare(replica, replica.core.leader_epoch, leads=False)

    def prepare(self, replica: Replica, epoch: Epoch, leads: bool) -> None:
        """Make the log ready for `epoch`; in the end the core is told LogReady."""
        queue = replica.queue
        if self._closed or queue is None or replica.core.leader_epoch != epoch or not self._is_current(replica):
            return
        queue.run_in_background(
            lambda: _make_ready(replica, epoch, leads),
            done=lambda ready: self._ready(replica, epoch, ready),
            failed=lambda _error: self._settled(replica.key),  # the directory has told whom it concerns
        )

    def _ready(self, replica: Replica, epoch: Epoch, ready: _Ready) -> None:
        if not self._is_current(replica):
            return
        replica.log = ready.log
        is_wanted = epoch == replica.core.leader_epoch
        if is_wanted:
            replica.next_offset = ready.end_offset
            replica.sequences.clear()
        self._step(
            replica,
            LogReady(
                leader_epoch=epoch,
                log_start=ready.log_start,
                end_offset=ready.end_offset,
                synced_end=ready.synced_end,
                epoch_start=ready.epoch_start,
                high_watermark=self._high_watermarks.get((replica.topic, replica.key[1]), 0),
            ),
        )
        if is_wanted and replica.core.is_follower:
            self._follow(replica)
        self._settled(replica.key)

    def _is_current(self, replica: Replica) -> bool:
        return self._registry.replicas.get(replica.key) is replica


def _make_ready(replica: Replica, epoch: Epoch, leads: bool) -> _Ready:
    """In the directory's worker. Everything it changes is durable when it returns."""
    log = replica.opened
    if log is None:
        queue = replica.queue
        assert queue is not None
        directory = queue.directory
        log = open_log(
            directory.disk,
            directory.path,
            replica.topic,
            replica.key,
            log_config(replica.config),
            directory.recovery_points,
            queue.log_starts,
            directory.clean,
        )
        replica.opened = log
    log.has_readers = leads
    if leads:
        epoch_start = log.begin_epoch(epoch)
    else:
        epoch_start = -1
        log.truncate_to(log.end_offset)  # forgets a leadership of ours without records: `last_epoch` is of a record
    if log.must_sync:
        log.sync()  # a follower's first fetch acknowledges all that the log holds
    return _Ready(log, log.start_offset, log.end_offset, log.synced_end, epoch_start)
