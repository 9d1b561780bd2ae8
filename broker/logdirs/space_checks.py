"""Measures the free space of the log directories from time to time, in their reader threads (free_space.py decides)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from broker.logdirs.free_space import reserve_bytes
from broker.logdirs.log_directory import DirectoryQueue
from quorumlog.errors import ApiError
from storage.disk import DiskError

CHECK_INTERVAL_MS = 500

_log = logging.getLogger("quorumlog.broker")


async def check_free_space_for_ever(queues: Sequence[DirectoryQueue], setting: int | None) -> None:
    """Measure each directory that is online, from time to time. setting: `log.dir.free.space.reserve.bytes`."""
    while True:
        for queue in queues:
            await _check(queue, setting)
        await asyncio.sleep(CHECK_INTERVAL_MS / 1000)


async def _check(queue: DirectoryQueue, setting: int | None) -> None:
    """What cannot be measured stays as it was measured last."""
    if not queue.is_usable:
        return
    disk, path, space = queue.directory.partitions.disk, queue.directory.path, queue.space
    try:
        total_bytes, free_bytes = await queue.read(lambda: (disk.total_bytes(path), disk.free_bytes(path)))
    except (ApiError, DiskError) as error:
        _log.debug("the free space of %s is unknown: %s", path, error)
        return
    if space.measured(free_bytes, reserve_bytes(total_bytes, setting)):
        if space.is_short:
            _log.error("%s", space.describe(path))
        else:
            _log.info("log directory %s has %d bytes of free space; producers may go on", path, free_bytes)
