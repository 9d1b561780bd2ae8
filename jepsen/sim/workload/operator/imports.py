"""An operator begins imports, and meanwhile asks for what may not be: a level below them, and more partitions.

Both are refused, or the import could not be finished any more (imports-end), or were lost (states-have-their-level,
invariants/metadata/level_states.py). Then it is finished, by the client's own importer from a source without records,
and the topic is deleted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.metadata.level_states import TAKES_AN_IMPORT
from jepsen.sim.truth.topics import Topic
from jepsen.sim.workload.operator.levels import SAFE_DOWNGRADE
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.import_topic import TopicImport
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.admin import FeatureUpdate
from quorumlog.messages.imports import BeginImportRequest
from quorumlog.records import BatchHeader
from quorumlog.rpc.transport import RpcError
from quorumlog_quorum.metadata.features import METADATA_VERSION

IMPORTED = "imported-"  # names of topics begin with it
FINISHED, LEVELS_REFUSED, PARTITIONS_REFUSED = (
    "imports finished", "levels below an import refused", "partitions beside an import refused",
)  # fmt: skip
BELOW = 3  # of metadata.version: the level before imports; other features would have to be off below it
_REPLICAS, _PARTITIONS, _EPOCH = 3, 2, 3
_GAP_S, _AGAIN_S, _LIMIT_S = (0.2, 1.5), 0.5, 5.0


@dataclass(frozen=True, slots=True)
class _NoRecords:
    """A source of an import. last_epoch: as if records of it had been there."""

    start_offset: Offset = 0
    log_start: Offset = 0
    end_offset: Offset = 0
    last_epoch: Epoch = _EPOCH
    max_producer_id: int = -1
    size: int = 0

    def batches(self, from_offset: Offset) -> Iterator[tuple[BatchHeader, bytes]]:
        yield from ()


class ImportChore:
    """counts: acknowledged or refused requests. Once it is `stopping` it ends with the import under way."""

    def __init__(self, cluster: SimCluster, rng: random.Random, admin: Callable[[], AsyncAdmin]) -> None:
        self._cluster, self._rng, self._admin = cluster, rng, admin
        self.stopping = False
        self.counts = {FINISHED: 0, LEVELS_REFUSED: 0, PARTITIONS_REFUSED: 0}
        self._next = 0

    async def run(self, _topics: Callable[[], list[Topic]]) -> None:
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*_GAP_S))
            name, self._next = f"{IMPORTED}{self._next}", self._next + 1
            await self._until(partial(self._begin, name))
            await self._ask_for_less()
            await self._ask_for_more(name)
            await self._until(partial(self._finish, name))
            self.counts[FINISHED] += 1
            await self._until(partial(self._delete, name))

    async def _begin(self, name: str, admin: AsyncAdmin) -> None:
        request = BeginImportRequest(
            name=name, replication_factor=_REPLICAS, last_epochs=(_EPOCH,) * _PARTITIONS, timeout_ms=2_000
        )
        response = await admin._link.call_any(request)
        if response.error_code:
            raise RequestFailed(ErrorCode(response.error_code), response.error_message)

    async def _ask_for_less(self) -> None:
        update = FeatureUpdate(name=METADATA_VERSION, level=BELOW, upgrade_type=SAFE_DOWNGRADE)
        error = await self._refusal(lambda admin: admin.update_features([update]))
        self.counts[LEVELS_REFUSED] += error == ErrorCode.INVALID_UPDATE_VERSION

    async def _ask_for_more(self, name: str) -> None:
        error = await self._refusal(lambda admin: admin.create_partitions(name, _PARTITIONS + 1))
        self.counts[PARTITIONS_REFUSED] += error == ErrorCode.INVALID_PARTITIONS

    async def _finish(self, name: str, admin: AsyncAdmin) -> None:
        sources = [_NoRecords()] * _PARTITIONS
        try:
            await TopicImport(admin._link, name, sources, lambda _taken, _of: None).run(_REPLICAS, {})
        except RequestFailed as error:
            is_refused = error.code in (ErrorCode.INVALID_REQUEST, ErrorCode.TOPIC_ALREADY_EXISTS)
            if is_refused and self._is_under_way(name):
                self._cluster.findings.broken("imports-end", f"{name} cannot be finished: {error}")
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # an earlier try has finished it
                raise

    def _is_under_way(self, name: str) -> bool:
        topic = self._cluster.image.topic(name)
        return topic is not None and any(
            one.leader_recovery_state == TAKES_AN_IMPORT for one in topic.partitions.values()
        )

    async def _delete(self, name: str, admin: AsyncAdmin) -> None:
        try:
            await admin.delete_topic(name)
        except RequestFailed as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise

    # --- asking

    async def _refusal(self, ask: Callable[[AsyncAdmin], Awaitable[object]]) -> ErrorCode | None:
        async with self._admin() as admin:
            try:
                await ask(admin)
            except RequestFailed as error:
                return error.code
            except (QuorumlogError, RpcError):
                pass
        return None

    async def _tried(self, ask: Callable[[AsyncAdmin], Awaitable[None]]) -> bool:
        """Whether it was done, for certain."""
        async with self._admin() as admin:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    await ask(admin)
            except (QuorumlogError, RpcError, TimeoutError):
                return False
        return True

    async def _until(self, ask: Callable[[AsyncAdmin], Awaitable[None]]) -> None:
        """Again and again, until it is done or a finding ends the run."""
        while not await self._tried(ask) and not self._cluster.findings:  # noqa: ASYNC110 - it asks meanwhile
            await asyncio.sleep(_AGAIN_S)
