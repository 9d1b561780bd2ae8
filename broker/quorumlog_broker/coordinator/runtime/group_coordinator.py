"""The coordinator of the groups of one partition of `__consumer_offsets`. Begin with `coordinator.py`.

Offsets in transactions come here, too: a producer's batches without numbers, and the markers that end them. Those are
checked against the producers of the partition's log in the turn in which the core decides.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset, Uuid
from quorumlog.messages.admin import ListedGroup
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog.settings.groups import GroupConfig
from quorumlog.slices import Sliced
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster
from quorumlog_broker.coordinator.groups.offsets.table import Partition
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.coordinator import Caller, Coordinator, Node, ShardCall, State
from quorumlog_broker.coordinator.runtime.loading import Portion
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from quorumlog_broker.produce.transactional import EndTransaction
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.producers.verification import Guard

__all__ = ["Caller", "GroupCoordinator", "ShardCall", "State"]

GROUPS_A_LISTING = 512  # in one turn of the loop


class GroupCoordinator(Coordinator[GroupShard]):
    """new_uuid: a fresh one as text. in_service: see `GroupCoordinators`.

    READING: calls whose answer must not be older than what another coordinator has acknowledged.
    """

    WRITING = frozenset(
        {
            GroupShard.join,
            GroupShard.sync_group,
            GroupShard.leave,
            GroupShard.consumer_heartbeat,
            GroupShard.commit_offsets,
            GroupShard.delete_offsets,
            GroupShard.delete_group,
            GroupShard.commit_transactional,
            GroupShard.end_transaction,
        }
    )
    READING = frozenset({GroupShard.fetch_offsets, GroupShard.fetch_stable_offsets})
    WAITS = frozenset({GroupShard.join, GroupShard.sync_group})
    BESIDE = frozenset({GroupShard.describe_consumer_groups})

    def __init__(
        self,
        replica: Replica,
        leader_epoch: Epoch,
        node: Node,
        *,
        config: GroupConfig,
        cluster: Cluster,
        new_uuid: Callable[[], str],
        in_service: Callable[[], bool],
    ) -> None:
        self._config, self._cluster, self._new_uuid, self._in_service = config, cluster, new_uuid, in_service
        self._deleted_topics: list[tuple[str, Uuid]] = []  # while the groups were not there
        self._works = False  # the core's own work is among the steps that are to run
        super().__init__(
            replica,
            leader_epoch,
            node,
            answer_timeout_ms=config.offsets_commit_timeout_ms,
            sweep_interval_ms=config.offsets_retention_check_interval_ms,
            max_waiting_calls=config.max_waiting_calls,
        )

    # --- the core ---

    def _new_core(self) -> GroupShard:
        core = GroupShard(self._config, self._new_uuid)
        core.use(self._cluster)
        return core

    def _replay(self, core: GroupShard, portion: Portion) -> None:
        if portion.marker is not None:
            core.replay_marker(portion.producer_id, committed=portion.marker.committed)
        for offset, key, value in portion.records:
            core.replay_bytes(offset, key or b"", value, portion.producer_id)

    def _loaded(self, core: GroupShard, end: Offset) -> Sliced[None]:
        return core.load_groups(end)

    def _tell_time(self, core: GroupShard, now_ms: int, wall_ms: int, largest_record_bytes: int) -> None:
        core.at(now_ms, wall_ms, largest_record_bytes)

    def _activated(self) -> None:
        deleted, self._deleted_topics = self._deleted_topics, []
        for topic, topic_id in deleted:
            self.topic_deleted(topic, topic_id)

    def _taken(self) -> None:
        for group_id, text in self._shard.take_notices():
            self._node.tell("group.rebalance", f"group/{group_id}", text)
        if self._shard.has_work and not self._works:
            self._works = True
            self._long.work(self._work())

    def _work(self) -> Sliced[None]:
        """What is too long for one turn, as the assignment of a large group."""
        while self._shard.has_work:
            self._shard.work()
            yield
        self._works = False

    def _dropped(self) -> None:
        self._works = False

    # --- calls ---

    def call(self, method: ShardCall, caller: Caller, request: Any) -> PendingAnswer:
        """As its base. A broker that the controller may have fenced reads behind a record that it writes first: if
        another one leads the partition by now, that is never committed, and nothing is told that may be out of date.
        """
        if method in self.READING and not self._in_service():
            self.check_active()
            self._check_appendable()
            self._around(lambda: self._shard.confirm(request.group_id))
        return super().call(method, caller, request)

    async def list(self) -> tuple[ListedGroup, ...]:
        """In slices: groups may come and go meanwhile. Raises ApiError as `call` does."""
        self.check_active()
        ids = self._shard.group_ids()
        found: list[ListedGroup] = []
        for at in range(0, len(ids), GROUPS_A_LISTING):
            self.check_active()
            found += self._shard.list(ids[at : at + GROUPS_A_LISTING])
            if at + GROUPS_A_LISTING < len(ids):
                await asyncio.sleep(0)
        return tuple(found)

    def group_ids(self) -> tuple[str, ...]:
        """Empty unless the groups are here, and loaded."""
        return self._shard.group_ids() if self.state is State.ACTIVE else ()

    def states(self) -> Counter[str]:
        """See `GroupShard.states`."""
        return self._shard.states() if self.state is State.ACTIVE else Counter()

    def offsets_read(self, group_id: str) -> Iterator[tuple[str, Uuid, int, Offset]]:
        """See `GroupShard.offsets_read`."""
        return self._shard.offsets_read(group_id)

    def has_offset(self, group_id: str, partition: Partition) -> bool:
        """Something is committed for it."""
        return self._shard.has_offset(group_id, partition)

    def begin_verification(
        self, producer_id: int, producer_epoch: int, now_ms: int, *, epoch_per_transaction: bool = False
    ) -> Guard | None:
        """The guard of offsets in a transaction, to be taken before its coordinator is asked; None: it is open here.

        Raises ApiError as `call` does.
        """
        self._check_in_order()
        assert self.replica.log is not None
        return self.replica.sequences.begin_unnumbered(
            self.replica.log, producer_id, producer_epoch, epoch_per_transaction=epoch_per_transaction, now_ms=now_ms
        )

    def commit_transactional(
        self, caller: Caller, request: TxnOffsetCommitRequest, guard: Guard | None
    ) -> PendingAnswer:
        """guard: see `begin_verification`; the coordinator of the transaction has vouched for it.

        Raises ApiError as `call` does; INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE; COORDINATOR_LOAD_IN_PROGRESS while
        a long call of the group runs.
        """
        self._check_in_order()
        assert self.replica.log is not None
        producer = (request.producer_id, request.producer_epoch)
        self.replica.sequences.check_unnumbered(self.replica.log, *producer, guard)
        if self._long.is_busy(request.group_id):  # its marker could come before it, while it waits
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"group {request.group_id} is at work; try again soon"
            )
        return self.call(GroupShard.commit_transactional, caller, request)

    def end_transaction(self, caller: Caller, ending: EndTransaction) -> PendingAnswer:
        """Answered once the marker is committed and what it decides can be read.

        Raises ApiError as `call` does; INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED;
        COORDINATOR_NOT_AVAILABLE while offsets of the transaction are written.
        """
        self._check_in_order()
        log, producer = self.replica.log, (ending.producer_id, ending.producer_epoch)
        assert log is not None
        self.replica.sequences.check_marker(log, *producer, ending.marker, ending.transaction_version)
        if self._shard.is_committing(ending.producer_id):
            text = f"offsets of producer {ending.producer_id} are being written; send the marker again soon"
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
        return self.call(GroupShard.end_transaction, caller, ending)

    def _check_in_order(self) -> None:
        """What was decided before is with the log's producers."""
        self.check_active()
        self._check_appendable()
        self._pending_appends.flush()

    # --- time ---

    def _sweep(self) -> None:
        self._long.work(self._shard.expire(self._shard.group_ids()))

    def topic_deleted(self, topic: str, topic_id: Uuid) -> None:
        """Take its offsets: once the groups are loaded, if they are not."""
        if self.state in (State.LOADING, State.BROKEN):
            self._deleted_topics.append((topic, topic_id))
        elif self.state is State.ACTIVE:
            self._long.work(self._shard.topic_deleted(self._shard.group_ids(), topic, topic_id))
