"""The coordinator of the transactional ids of one partition of `__transaction_state`. Begin with `coordinator.py`.

What it has decided is offered once the decision is committed; what became of its markers comes back by `markers_ended`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from quorumlog.ids import Epoch, Offset
from quorumlog.messages.joint import ListedJointGroup
from quorumlog.messages.transactions import AddOffsetsToTxnRequest, ListedTransaction, ListTransactionsRequest
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import NO_PRODUCER
from quorumlog.settings.transactions import TransactionConfig
from quorumlog.slices import Sliced
from quorumlog.turn import in_turns
from quorumlog_broker.coordinator.runtime.coordinator import Coordinator, Node, State
from quorumlog_broker.coordinator.runtime.loading import Portion
from quorumlog_broker.coordinator.transactions.marker_lanes import Owner
from quorumlog_broker.coordinator.transactions.markers import MarkerResult, Source
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.turn import Call
from quorumlog_broker.replicas.replica import Replica

ANSWER_TIMEOUT_MS = 15_000  # a client waits for longer, and Kafka's coordinator waits for 30 s


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSources:
    """What transactions need to know of this broker, now. transaction_version, joint_version: the levels of these
    features. partitions: that `__transaction_state` has. See `TransactionShard` for the others."""

    transaction_version: Callable[[], int]
    joint_version: Callable[[], int]
    new_producer_id: Callable[[], int | None]
    partition_exists: Callable[[str, int], bool]
    partitions: Callable[[], int]


def add_offsets(shard: TransactionShard, call: Call, asked: tuple[AddOffsetsToTxnRequest, int]) -> None:
    """`TransactionShard.add_offsets` as a call with one argument."""
    shard.add_offsets(call, *asked)


class TransactionCoordinator(Coordinator[TransactionShard]):
    """on_decided: it has what `take_decided` gives. on_dropped: the owner leads no more."""

    WRITING = frozenset(
        {
            TransactionShard.init_producer_id,
            TransactionShard.add_partitions,
            add_offsets,
            TransactionShard.end_transaction,
            TransactionShard.begin_joint,
            TransactionShard.commit_joint,
            TransactionShard.abort_joint,
            TransactionShard.forget_joint,
        }
    )
    RECORDS_A_TURN = 256  # each is decoded whole: 16 us for that of an open transaction

    def __init__(
        self,
        replica: Replica,
        leader_epoch: Epoch,
        node: Node,
        *,
        config: TransactionConfig,
        sources: TransactionSources,
        on_decided: Callable[[Owner, Source], None],
        on_dropped: Callable[[Owner], None],
    ) -> None:
        self._config, self._sources = config, sources
        self._on_decided, self._on_dropped = on_decided, on_dropped
        self.owner = Owner(replica.key[1], leader_epoch)
        super().__init__(
            replica,
            leader_epoch,
            node,
            answer_timeout_ms=ANSWER_TIMEOUT_MS,
            sweep_interval_ms=config.remove_interval_ms,
            max_waiting_calls=config.max_waiting_calls,
        )

    # --- the core ---

    def _new_core(self) -> TransactionShard:
        sources = self._sources
        return TransactionShard(
            self._config,
            sources.new_producer_id,
            sources.partition_exists,
            self.leader_epoch,
            sources.partitions,
            sources.joint_version,
        )

    def _replay(self, core: TransactionShard, portion: Portion) -> None:
        if portion.producer_id != NO_PRODUCER or portion.marker is not None:
            text = f"a batch of producer {portion.producer_id}, and no producer writes here"
            raise CorruptRecords(0, text)
        for offset, key, value in portion.records:
            core.replay_bytes(offset, key or b"", value)

    def _loaded(self, core: TransactionShard, end: Offset) -> Sliced[None]:
        return core.load_ids(end)

    def _tell_time(self, core: TransactionShard, now_ms: int, wall_ms: int, largest_record_bytes: int) -> None:
        core.at(now_ms, wall_ms, self._sources.transaction_version(), largest_record_bytes)

    def _taken(self) -> None:
        if self._shard.has_decided:
            self._on_decided(self.owner, self)

    def _dropped(self) -> None:
        self._on_dropped(self.owner)

    def _sweep(self) -> None:
        self._shard.expire()

    # --- calls ---

    async def list(
        self, request: ListTransactionsRequest, matches: Callable[[str], bool] | None
    ) -> tuple[ListedTransaction, ...]:
        """In slices. Raises ApiError as `call` does."""
        self.check_active()
        self._at_now()
        found = await in_turns(self._shard.list(request, matches))
        self.check_active()
        return found

    async def list_joint(self) -> tuple[ListedJointGroup, ...]:
        """In slices. Raises ApiError as `call` does."""
        self.check_active()
        found = await in_turns(self._shard.list_joint())
        self.check_active()
        return found

    async def commits_under_way(self) -> bool:
        """In slices; see `TransactionShard.commits_under_way`. Raises ApiError as `call` does."""
        self.check_active()
        found = await in_turns(self._shard.commits_under_way())
        self.check_active()
        return found

    @property
    def open_count(self) -> int:
        """See `TransactionShard.open_count`."""
        return self._shard.open_count if self.state is State.ACTIVE else 0

    @property
    def joint_counts(self) -> tuple[int, int]:
        """See `TransactionShard.joint_counts`. What is loaded so far."""
        return self._shard.joint_counts

    # --- markers ---

    @property
    def has_decided(self) -> bool:
        return self.state is State.ACTIVE and self._shard.has_decided

    def take_decided(self, limit: int) -> Sequence[DecidedTransaction]:
        """See `TransactionShard.take_decided`."""
        if not self.has_decided:
            return []
        self._at_now()
        decided = self._shard.take_decided(limit)
        self._take()
        return decided

    def unconfirmed(self, transactional_id: str) -> DecidedTransaction | None:
        """See `Completion.unconfirmed`."""
        return self._shard.unconfirmed(transactional_id)

    def markers_ended(self, results: Iterable[MarkerResult]) -> None:
        """Markers of this leadership are written, or were refused for good."""
        self._at_now()
        for marker, is_written in results:
            if is_written:
                self._shard.marker_written(marker.transactional_id, marker.ending.producer_epoch, marker.partition)
            else:
                self._shard.marker_refused(marker.transactional_id, marker.ending.producer_epoch)
        self._take()
