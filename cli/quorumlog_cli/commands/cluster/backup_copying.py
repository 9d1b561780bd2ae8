"""Copies the partitions of a cut into a backup's folder: several at once, paced, while compaction stays paused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorumlog.backup.compaction_pause import RENEW_MS
from quorumlog.client.errors import NoSuchTopic, QuorumlogError, RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog.topic_name import INTERNAL_TOPICS

if TYPE_CHECKING:
    from quorumlog.client.admin import AsyncAdmin
    from quorumlog.client.administration.export_partition import ExportedPart, Take
    from quorumlog_cli.commands.cluster.backup_writing import BackupFolder, Begun

AT_ONCE = 4  # partitions; more would hold the memory of as many fetches
STARTS = 20  # of the copy of one partition whose records retention deletes meanwhile
AGAIN_S = 1.0  # a pause that could not be renewed is tried again; it has minutes left
GONE = "deleted while the backup ran"


@dataclass(slots=True)
class Pace:
    """Of all partitions together. bytes_per_s: 0: any. now_s: of a clock that does not jump."""

    bytes_per_s: int
    now_s: Callable[[], float] = time.monotonic
    _ready_s: float = field(default=0.0, init=False)  # when all that was taken is paid for

    def wait_s(self, size: int) -> float:
        """After so many bytes."""
        if not self.bytes_per_s:
            return 0.0
        now_s = self.now_s()
        self._ready_s = max(now_s, self._ready_s) + size / self.bytes_per_s
        return self._ready_s - now_s


@dataclass(slots=True)
class Copying:
    """show: told how many partitions are done, and of how many."""

    admin: AsyncAdmin
    made: BackupFolder
    begun: Begun
    pace: Pace
    wall_ms: Callable[[], int]
    show: Callable[[int, int], None]
    left_out: dict[str, str] = field(default_factory=dict, init=False)
    _noting: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def run(self) -> dict[str, str]:
        """Topics that were deleted meanwhile, with what to say of them. Raises PauseEnded, what an export raises."""
        begun = self.begun  # what compaction may change goes first: the rest can be copied without the pause
        order = sorted(begun.ends, key=lambda key: (key[0] not in INTERNAL_TOPICS, key[0] not in begun.compacted, key))
        waiting = iter([key for key in order if key not in self.made.done])
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def failed(_name: str, error: BaseException) -> None:
            if not over.done():
                over.set_exception(error)

        nursery = Nursery(failed)
        try:
            nursery.start(self._renew(), "pause of compaction")
            copies = [nursery.start(self._copy_some(waiting, len(order)), f"copy {n}") for n in range(AT_ONCE)]
            nursery.start(_await_all(copies, over), "end of the copies")
            await over
        finally:
            await nursery.close()
        self.made.pause.due(self.wall_ms())  # it has lasted until now
        return self.left_out

    async def _renew(self) -> None:
        while True:
            try:
                if await self.made.pause.keep(self.wall_ms(), self.admin.pause_compaction):
                    async with self._noting:
                        await asyncio.to_thread(self.made.note_pause)
                await asyncio.sleep(RENEW_MS / 2_000)
            except (QuorumlogError, RpcError):
                await asyncio.sleep(AGAIN_S)

    async def _copy_some(self, waiting: Iterator[TopicPartition], count: int) -> None:
        for key in waiting:
            if key[0] not in self.left_out and not await self._copy(key):
                self.left_out[key[0]] = GONE
            self.show(len(self.made.done), count)

    async def _copy(self, key: TopicPartition) -> bool:
        """False: the topic is gone."""
        from quorumlog.client.administration.export_partition import RecordsDeleted, TopicDeleted

        topic, index = key
        end = self.begun.ends[key]
        for start in range(1, STARTS + 1):
            await asyncio.sleep(self.pace.wait_s(0))  # a part is waited for by whatever comes next
            file = self.made.partition(key, end, self.begun.producers)
            try:
                if end:  # else nothing was ever written, as in most partitions of the internal topics
                    take, topic_id = self._paced(file.take), self.begun.topics[topic]
                    await self.admin.export_partition(topic, index, take, end=end, topic_id=topic_id)
                found = await asyncio.to_thread(file.finish)
                async with self._noting:
                    await asyncio.to_thread(self.made.add, found)
                return True
            except RecordsDeleted:
                if start == STARTS:
                    raise
            except (TopicDeleted, NoSuchTopic):
                return False
            except RequestFailed as error:
                if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                    raise
                return False
            finally:
                file.close()
        raise AssertionError("the last try raises or returns")

    def _paced(self, take: Callable[[ExportedPart], None]) -> Take:
        def paced(part: ExportedPart) -> float:
            take(part)
            return self.pace.wait_s(len(part.records))

        return paced


async def _await_all(copies: Iterable[asyncio.Task[None]], over: asyncio.Future[None]) -> None:
    for copy in copies:
        await copy
    if not over.done():
        over.set_result(None)
