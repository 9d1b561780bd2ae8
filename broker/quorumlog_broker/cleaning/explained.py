"""Why a log is, or is not, compacted on this broker: for `quorumlog log explain-compaction` and the metrics."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.messages.admin import AlterConfigsResource, ExplainCompactionResponse
from quorumlog_broker.cleaning.choice import Dirt
from quorumlog_broker.cleaning.manager import CleanerManager, is_compacted
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log_errors import LogUnreadable


class Uncleanable(NamedTuple):
    """Logs whose last round failed, and their bytes that wait for it."""

    logs: int
    bytes: int


class ExplainedCompactions:
    """Used on the loop."""

    def __init__(self, registry: Registry, cleaner: CleanerManager, clock: Clock) -> None:
        self._registry, self._cleaner, self._clock = registry, cleaner, clock

    def check_settings(self, asked: AlterConfigsResource) -> None:
        """Raises ApiError for a change of the cleaner's settings that is too large a step."""
        self._cleaner.config.check(asked)

    @property
    def paused_ms(self) -> int:
        """For how long from now nothing is compacted; 0: something may be."""
        return self._cleaner.paused_ms

    async def explain(self, topic: str, index: int) -> ExplainCompactionResponse:
        """Raises ApiError for a partition that is not here."""
        replica = self._registry.find(topic, index)
        try:
            dirt = await self._cleaner.judged(replica)
        except (ApiError, LogUnreadable):
            dirt = None
        cleaner, key = self._cleaner, replica.key
        failure, last = cleaner.failures.by_key.get(key), cleaner.last.get(key)
        retry_in_ms = -1 if failure is None else max(0, failure.retry_ms - self._clock.now_ms())
        return ExplainCompactionResponse(
            state=cleaner.states.describe(key),
            reason=self._reason(replica, dirt),
            first_dirty_offset=-1 if dirt is None else dirt.first_dirty,
            boundary_offset=-1 if dirt is None else dirt.boundary,
            clean_bytes=0 if dirt is None else dirt.clean_bytes,
            dirty_bytes=0 if dirt is None else dirt.dirty_bytes,
            blocked_bytes=0 if dirt is None else dirt.blocked_bytes,
            dirty_percent=0 if dirt is None else int(100 * dirt.ratio),
            failures=0 if failure is None else failure.times,
            failure="" if failure is None else failure.reason,
            retry_in_ms=retry_in_ms,
            last_round_ms=-1 if last is None else last.ended_ms,
            last_bytes_before=0 if last is None else last.bytes_before,
            last_bytes_after=0 if last is None else last.bytes_after,
        )

    @property
    def uncleanable(self) -> Uncleanable:
        found = [self._registry.replicas.get(key) for key in self._cleaner.failures.by_key]
        logs = [replica.log for replica in found if replica is not None and replica.log is not None]
        return Uncleanable(len(found), sum(log.size_bytes for log in logs))

    def _reason(self, replica: Replica, dirt: Dirt | None) -> str:
        if replica.config.retention_paused:
            return "retention.paused is set; an import begins so (quorumlog log import --activate)"
        if not is_compacted(replica):
            return "cleanup.policy does not have compact, or the topic is being imported"
        if not self._cleaner.threads:
            return "the cleaner is off: log.cleaner.enable, log.cleaner.threads"
        if self._cleaner.paused_ms:
            return "compaction is paused: log.cleaner.paused.until.ms, which a backup sets while it copies"
        if dirt is None:
            return "the log is not open, or its directory is offline or busy"
        failure = self._cleaner.failures.by_key.get(replica.key)
        if failure is not None:
            return f"the last {failure.times} rounds failed: {failure.reason}"
        if not self._cleaner.states.is_free(replica.key):
            return ""
        if dirt.is_due:
            return "it is due, and waits for its turn"
        if not dirt.dirty_bytes:
            return f"nothing may be cleaned: {dirt.reason or 'only the last segment is dirty'}"
        wanted = int(100 * replica.config.min_cleanable_dirty_ratio)
        return f"{int(100 * dirt.ratio)} % are dirty, min.cleanable.dirty.ratio asks for {wanted} %"
