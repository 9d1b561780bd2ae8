"""Brings one log directory back online at an operator's request: what may be asked, and who has to know of it.

The controller must have taken the directory away before it comes back. Only then has every leadership in it ended with
an epoch of its own: a log that lost its newest records must not lead on in an epoch in which it assigned offsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.nursery import Nursery
from quorumlog_broker.lifecycle.shell import LifecycleShell
from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_broker.replicas.directory_returns import DirectoryReturns
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_storage.writer.directory_life import DirectoryOffline, DirectoryState

TOLD_WAIT_MS = 30_000  # as Kafka's log.dir.failure.timeout.ms
TOLD_POLL_MS = 100

_log = logging.getLogger("quorumlog.broker")
Reopen = Callable[[str], Awaitable[LogDirectory]]


class DirectoryReturn:
    """directories: the broker's; the entry of a path is replaced when a new generation of it begins."""

    def __init__(
        self,
        node_id: NodeId,
        directories: list[LogDirectory],
        returns: DirectoryReturns,
        lifecycle: LifecycleShell,
        subscription: MetadataLoader,
        nursery: Nursery,
        reopen: Reopen,
        on_returned: Callable[[LogDirectory], None],
    ) -> None:
        """reopen: locks the directory in a new generation; raises what keeps it from that.

        on_returned: it is online.
        """
        self._node_id = node_id
        self._directories = directories
        self._returns = returns
        self._lifecycle = lifecycle
        self._subscription = subscription
        self._nursery = nursery
        self._reopen = reopen
        self._on_returned = on_returned
        self._under_way: set[str] = set()  # paths; never iterated

    async def begin(self, path: str) -> None:
        """Lock the directory again and begin to verify it; DescribeLogDirs tells the progress. Raises ApiError."""
        number = self._number(path)
        before = self._directories[number]
        if before.life.state is not DirectoryState.FAILED or path in self._under_way:
            state = "being verified" if path in self._under_way else before.life.state.value
            raise ApiError(ErrorCode.INVALID_REQUEST, f"log directory {path} is {state}; nothing was done")
        self._under_way.add(path)
        try:
            await self._until_taken_away(before)
            directory = await self._open(path)
        except BaseException:
            self._under_way.discard(path)
            raise
        self._directories[number] = directory
        self._nursery.start(self._verify(directory), "return of a log directory")

    def _number(self, path: str) -> int:
        for number, entry in enumerate(self._directories):
            if entry.path == path:
                return number
        paths = ", ".join(entry.path for entry in self._directories)
        raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs of this broker: {paths}")

    async def _until_taken_away(self, directory: LogDirectory) -> None:
        for _ in range(TOLD_WAIT_MS // TOLD_POLL_MS):
            own = self._subscription.image.brokers.get(self._node_id)
            if own is not None and directory.directory_id not in own.log_directories:
                return
            await asyncio.sleep(TOLD_POLL_MS / 1_000)
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"the controller does not know yet that {directory.path} is offline; try again when there is a controller",
        )

    async def _open(self, path: str) -> LogDirectory:
        try:
            return await self._reopen(path)
        except Exception as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} stays offline: {error}") from error

    async def _verify(self, directory: LogDirectory) -> None:
        _log.info("log directory %s is back; every log in it is verified before it serves", directory.path)
        try:
            await self._returns.take_back(directory)
        except (ApiError, DirectoryOffline) as error:
            directory.life.fail(error, directory.generation)
            _log.error("log directory %s stays offline: %s", directory.path, error)
            return
        finally:
            self._under_way.discard(directory.path)
        _log.info("log directory %s is online", directory.path)
        self._on_returned(directory)
        self._lifecycle.register_again()
        self._lifecycle.on_directories_changed()
