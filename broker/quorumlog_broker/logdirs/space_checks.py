"""Measures the free space of the log directories from time to time, in their reader threads (free_space.py decides).

A directory in which nothing is appended is measured less and less often: only another program can fill its disk. The
first append ends that rest with a measurement. While producers are refused there is no rest, so that they may soon go
on.
"""

from __future__ import annotations

import asyncio
import logging

from quorumlog.errors import ApiError
from quorumlog.idle_backoff import IdleBackoff
from quorumlog.reserve import reserve_bytes
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_storage.files.disk import DiskError

REST_INTERVAL_MAX_MS = 8_000  # while nothing is appended

_log = logging.getLogger("quorumlog.broker")


async def check_free_space_for_ever(queue: DirectoryQueue, setting: int | None, interval_ms: int) -> None:
    """Measure the directory until it fails. setting: `log.dir.free.space.reserve.bytes`."""
    rest = IdleBackoff(interval_ms, max(interval_ms, REST_INTERVAL_MAX_MS))
    while queue.is_usable:
        if queue.has_appended.is_set() or queue.space.is_short:
            rest.news()
        else:
            rest.quiet()
        queue.has_appended.clear()
        await _check(queue, setting)
        await asyncio.sleep(interval_ms / 1000)
        try:
            async with asyncio.timeout((rest.interval_ms - interval_ms) / 1000):
                await queue.has_appended.wait()
        except TimeoutError:
            pass


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
    space.total_bytes = total_bytes
    space.full_part = 1 - free_bytes / total_bytes if total_bytes else 0.0
    if space.measured(free_bytes, reserve_bytes(total_bytes, setting)):
        if space.is_short:
            _log.error("%s", space.describe(path))
        else:
            _log.info("log directory %s has %d bytes of free space; producers may go on", path, free_bytes)
