"""An operator takes the cut of a backup again and again, and a group that reads up to the end of a topic commits that.

No other group can be as far as this one: it commits the high watermark that it has just been told.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.checkers.backup_cuts import CutTaken, GroupCommit
from jepsen.sim.truth.topics import Topic
from quorumlog.backup.compaction_pause import CompactionPause
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.backup_cut import CutFailed
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.offsets import LATEST
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition
from quorumlog.rpc.transport import RpcError
from quorumlog_server.restoring.cut_topics import cut_topics

GROUP = "at-the-end"
TAKEN, AGAIN, GIVEN_UP = "cuts taken", "cuts tried again", "cuts given up"
_CUT_GAP_S, _COMMIT_GAP_S = (0.2, 2.0), (0.01, 0.2)
_CUT_MS = 20_000  # faults may last for seconds
_HOLDER_BYTES = 16


class BackupChore:
    """cuts: those that were taken. commits: those of the group that were acknowledged."""

    def __init__(
        self,
        rng: random.Random,
        admin: Callable[[], AsyncAdmin],
        now_ns: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        self._rng, self._admin, self._now_ns, self._wall_ms = rng, admin, now_ns, wall_ms
        self._pause = CompactionPause()
        self.cuts: list[CutTaken] = []
        self.commits: list[GroupCommit] = []
        self.counts = {TAKEN: 0, AGAIN: 0, GIVEN_UP: 0}
        self.stopping = False

    async def run(self) -> None:
        """Until `stopping`."""
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*_CUT_GAP_S))
            began_ns = self._now_ns()
            async with self._admin() as admin:
                try:
                    await self._pause.keep(self._wall_ms(), admin.pause_compaction)
                    cut = await admin.take_cut(cut_topics, lambda: self._rng.randbytes(_HOLDER_BYTES), _CUT_MS)
                except (CutFailed, QuorumlogError, RpcError):
                    self.counts[GIVEN_UP] += 1
                    continue
            self.cuts.append(CutTaken(began_ns, cut.ends, cut.producers))
            self.counts[TAKEN] += 1
            self.counts[AGAIN] += cut.tries - 1

    async def read_to_the_end(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`. topics: those that exist now."""
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*_COMMIT_GAP_S))
            known = [(topic.name, index) for topic in topics() for index in range(topic.partitions)]
            if known:
                async with self._admin() as admin:
                    try:
                        await self._commit(admin, self._rng.choice(known))
                    except (QuorumlogError, RpcError):
                        continue

    async def _commit(self, admin: AsyncAdmin, key: TopicPartition) -> None:
        end = (await admin.list_offsets({key: LATEST}))[key].offset
        told = await admin.alter_group_offsets(GROUP, {key: CommittedOffset(end)})
        if told[key] == ErrorCode.NONE:
            self.commits.append(GroupCommit((GROUP, *key), end, self._now_ns()))
