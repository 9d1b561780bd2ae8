"""Closing the logs of one log directory at a stop: some at a time, on the threads that open them at a start.

A log that was written to needs some syncs before it is in order: its records, the snapshot of its producers, its names.
Thousands of them, one after the other, take longer than all the rest of a stop. Each job takes a few logs.

Order: what the writer has in its queue comes first, and until the last log is closed it gets nothing more, because a
log has one changer at a time. The checkpoints are written by the writer after that, and the marker of a clean shutdown
after the checkpoints: neither counts on a log that is not closed.

Whether the directory may get that marker is Kafka's rule (LogManager.shutdown): it was clean at the start, or all its
logs were loaded since. A clean start trusts every log, so none may be left that nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from functools import partial
from typing import Any

from quorumlog.nursery import Nursery
from quorumlog_broker.logdirs.hosted_replica import HostedReplica
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_storage.directory.partition_log import PartitionLog


def is_left_clean(
    queue: DirectoryQueue, held: Sequence[HostedReplica], found: Set[PartitionKey], *, all_known: bool
) -> bool:
    """held: its replicas. found: what it held at the start and still holds.

    all_known: it was listed, and holds nothing that `found` does not name.
    """
    if not queue.directory.life.is_online or any(replica.core.failed for replica in held):
        return False
    if queue.directory.partitions.clean:
        return True
    return all_known and found <= {replica.key for replica in held if replica.partition_log is not None}


LOGS_PER_JOB = 8


async def all_at_once(closings: Mapping[str, Coroutine[Any, Any, bool]]) -> frozenset[str]:
    """The paths of the directories whose closing says True. Raises what the first one raises, by their order."""
    nursery = Nursery(lambda _name, _error: None)  # whoever awaits a task gets its error
    tasks = {path: nursery.start(closing, f"close {path}") for path, closing in closings.items()}
    try:
        return frozenset([path for path, task in tasks.items() if await task])
    finally:
        await nursery.close()


async def close_logs(queue: DirectoryQueue, find: Callable[[], Sequence[PartitionLog]]) -> None:
    """Sync and close the logs that `find` names once the writer is done.

    Raises what the first failed job has raised, DirectoryOffline, or ApiError.
    The directory takes no changes meanwhile. Jobs beside its writer have ended (`DirectoryQueue.all_given_back`).
    """
    queue.hurry()
    await queue.run(_nothing)
    logs = find()
    queue.logs_to_close = len(logs)
    jobs = [
        partial(_close, queue.closed_logs, logs[at : at + LOGS_PER_JOB]) for at in range(0, len(logs), LOGS_PER_JOB)
    ]
    failures = list[Exception]()
    with queue.without_changes():
        for closing in [queue.run(job, Lane.BESIDE) for job in jobs]:
            try:
                await closing
            except Exception as error:
                failures.append(error)
    if failures:
        raise failures[0]


def _nothing() -> None:
    """What the queue held before it is done."""


# --- beside the writer ---


def _close(closed: list[object], logs: Sequence[PartitionLog]) -> None:
    for log in logs:
        log.close()
        closed.append(log)
