"""The exchange of a replica's log for its copy in another directory (quorumlog_storage/moves/promotion.py says what is
on disk).

The replica stays what it is, a leader or a follower, and its core notices nothing: both logs hold the same. From
`Replica.exchange` on no change of the log is queued: appends wait in the line of a full queue, fetched records are
fetched again, epochs and settings wait in `Exchange.waiting`. Reads go on, from the source and then from the copy.

Both directories have handed the partition over meanwhile, so a deletion or a new partition of the same name waits, too.

What a failure does:

- of the target before the source has left: the source takes appends again, and the move is over
- of the source: its directory is offline, as always; the copy stays where it is, for the time when that comes back
- of the target after the source has left: the replica lies in a directory that has failed, as always
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from quorumlog.errors import ApiError
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.hosted_replica import Exchange
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.partition.events import LogFailed
from quorumlog_broker.replicas.replica import Replica, Step, log_config
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable
from quorumlog_storage.moves import promotion
from quorumlog_storage.moves.future_log import FutureLog
from quorumlog_storage.moves.promotion import Frozen, NotReady, SourceFailed
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.writer.directory_life import DirectoryOffline

T = TypeVar("T")

RETRY_MS = 50  # where a queue is full, or the process short of descriptors
REST_BYTES = 8 << 20  # copied at most while nobody can append

_log = logging.getLogger("quorumlog.broker")


async def exchange(
    replica: Replica, target: DirectoryQueue, future: FutureLog, store: PartitionStore, step: Step
) -> bool:
    """True: the copy is the log now. False: not yet, the copy goes on being filled.

    Not to be cancelled. Raises ApiError, DirectoryOffline, DiskError, LogUnreadable, LogClosed where the move is over.
    """
    source, held = replica.queue, replica.partition_log
    assert source is not None and held is not None
    partition = held.partition
    first_dirty = held.first_dirty
    await target.run(partial(future.note, replica.core.high_watermark, first_dirty))
    if partition in source.handed_over or partition in target.handed_over or replica.partition_log is not held:
        return False
    source.handed_over.hand_over(partition)
    target.handed_over.hand_over(partition)
    replica.exchange = Exchange(source, target)
    try:
        return await _exchange(replica, source, target, held, future, store, step)
    finally:
        waiting, replica.exchange = replica.exchange.waiting, None
        source.handed_over.give_back(partition)
        target.handed_over.give_back(partition)
        for call in waiting:
            call()


async def _exchange(
    replica: Replica,
    source: DirectoryQueue,
    target: DirectoryQueue,
    held: PartitionLog,
    future: FutureLog,
    store: PartitionStore,
    step: Step,
) -> bool:
    frozen = await source.run(partial(promotion.freeze, held), Lane.BACKGROUND)  # behind what was queued before
    try:
        await _complete(source, target, held.log, future, frozen)
    except BaseException as error:
        if source.is_usable:
            await source.run(partial(promotion.thaw, held))
        if isinstance(error, NotReady):
            _log.debug("%s", error)
            return False
        raise
    name = await until_not_busy(lambda: source.run(partial(promotion.leave, held, store.fresh_id())))
    try:
        log = await until_not_busy(
            lambda: target.run(partial(promotion.rename_in, future, log_config(replica.config), frozen), Lane.BESIDE)
        )
        taken = await until_not_busy(
            lambda: target.run(partial(promotion.take_over, future, held.topic_id, log, frozen))
        )
    except (ApiError, DirectoryOffline, DiskError, LogUnreadable, LogClosed):
        replica.queue = target
        store.moved(replica, source, target, name)
        step(replica, LogFailed())
        raise
    replica.queue, replica.partition_log, replica.log = target, taken, taken.log
    store.moved(replica, source, target, name)
    return True


async def _complete(
    source: DirectoryQueue, target: DirectoryQueue, log: Log, future: FutureLog, frozen: Frozen
) -> None:
    """An error of the source that the target's job has met is told to the source."""
    work = partial(promotion.complete, future, log, frozen, source.directory_id, REST_BYTES)
    try:
        await target.run(work, Lane.BESIDE)
    except LogUnreadable as error:
        if error.log is log:
            source.is_unreadable(error)
        raise
    except SourceFailed as failed:
        if consequence_of(failed.cause) is Consequence.DIRECTORY_OFFLINE:
            source.fail(failed.cause)
        raise failed.cause from failed


async def until_not_busy(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again while the process is short of descriptors or memory: what was begun has to end."""
    while True:
        try:
            return await ask()
        except Busy:
            await asyncio.sleep(RETRY_MS / 1000)
