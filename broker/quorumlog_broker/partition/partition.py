"""One replica of a partition: its leader, its ISR, its high watermark. Pure: no I/O, no clock.

The four rules of replication and where they live:

1. A follower reconciles before it fetches data in a new epoch: every fetch carries its last epoch (`fetcher.py`).
2. Truncation is fenced by the leader epoch: the shell checks it before it truncates.
3. The high watermark moves only by fetches of this leader epoch, over the maximal ISR, and not while the ISR is below
   the minimum: `_advance_high_watermark`.
4. A follower joins the ISR only once it has reached the high watermark and the epoch's start, by a fetch of this epoch
   and with the broker epoch that the metadata has: `_may_join`. Nor does it hold records that were deleted here: who
   may lead has carried out every deletion that was acknowledged (`low_watermark`).

Sources: Kafka's `Partition`, KIP-497, KIP-841, KIP-903, KIP-966.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import assert_never

from quorumlog.ids import NO_EPOCH, NO_NODE, BrokerEpoch, Epoch, NodeId, Offset
from quorumlog_broker.partition.events import (
    BrokersChanged,
    Follow,
    FollowerFetched,
    HighWatermarkMoved,
    IsrAnswered,
    LeaderElected,
    LeaderHighWatermark,
    LeadershipLost,
    LogAdvanced,
    LogFailed,
    LogReady,
    LogRecovered,
    LogStartMoved,
    LogTruncated,
    LowWatermarkMoved,
    MetadataChanged,
    MinIsrChanged,
    PartitionEffect,
    PartitionEvent,
    ProposeIsr,
    SettingsChanged,
    TakeLeadership,
    Tick,
    UnnamedFetch,
    WentOffline,
)
from quorumlog_broker.partition.follower_progress import UNKNOWN, FollowerProgress
from quorumlog_broker.partition.isr_agreement import IsrAgreement, ProposalStatus
from quorumlog_broker.partition.isr_state import Committed, IsrState, PendingExpand, PendingShrink
from quorumlog_storage.producers.transactions import STABLE
from quorumlog_storage.rules.commit_rule import high_watermark
from quorumlog_storage.segment.log_config import NEVER


class Role(Enum):
    OFFLINE = "offline"  # before the first metadata of this life of the broker, or the log failed
    LEADER = "leader"
    FOLLOWER = "follower"


class Partition:
    """Invariants (`check_invariants`): log_start <= last_stable_offset <= high_watermark <= end_offset; synced_end <=
    end_offset; the epochs and, within one leadership, the high watermark never fall; a leader is in its own ISR."""

    def __init__(
        self, node_id: NodeId, *, min_isr: int, durable: bool, flush_messages: int = NEVER, lag_time_max_ms: int
    ) -> None:
        """min_isr: the topic's `min.insync.replicas`; above the replica count it means all of them.

        durable, flush_messages: see `counted_end`.
        """
        self.node_id = node_id
        self.min_isr = min_isr
        self.durable = durable
        self.flush_messages = flush_messages
        self._lag_time_max_ms = lag_time_max_ms
        self.role = Role.OFFLINE
        self.failed = False
        self._failed_epoch: Epoch = NO_EPOCH  # of the last leadership whose log failed
        self.ready = False  # LogReady came for this leader epoch
        self.leader: NodeId = NO_NODE
        self.leader_epoch: Epoch = NO_EPOCH
        self.replicas: tuple[NodeId, ...] = ()
        self._others: tuple[NodeId, ...] = ()  # `replicas` without this one
        self._agreement = IsrAgreement()
        self.log_start: Offset = 0
        self.synced_end = self.high_watermark = self.end_offset = self.log_start
        self.unstable = STABLE  # of the records before end_offset
        self.epoch_start: Offset = 0  # where this leadership began
        self.followers: dict[NodeId, FollowerProgress] = {}  # of a leader, in the order of `replicas`
        self._eligible: Mapping[NodeId, BrokerEpoch] = {}
        self._opened = False
        self._low_watermark_reported: Offset = UNKNOWN
        self._may_lead: frozenset[NodeId] = frozenset()  # ISR and ELR, and who has left them as far as is known here

    @property
    def is_leader(self) -> bool:
        """True once the log is ready to be written in this epoch."""
        return self.role is Role.LEADER and self.ready

    @property
    def is_follower(self) -> bool:
        return self.role is Role.FOLLOWER and self.ready

    @property
    def isr_state(self) -> IsrState:
        return self._agreement.state

    @property
    def partition_epoch(self) -> int:
        return self._agreement.partition_epoch

    @property
    def counted_end(self) -> Offset:
        """The end up to which this replica counts for the high watermark.

        If the topic is `durable`, only synced records count. Otherwise unsynced ones count too, as long as there are
        fewer than `flush_messages`; with more, a sync is under way and has to finish first.
        """
        if self.durable or self.end_offset - self.synced_end >= self.flush_messages:
            return self.synced_end
        return self.end_offset

    @property
    def last_stable_offset(self) -> Offset:
        """How far a read_committed consumer reads: not into a transaction that is open, or whose end may not be known
        to all replicas; but never less than the log's start."""
        return max(self.log_start, min(self.high_watermark, self.unstable.first(self.high_watermark)))

    @property
    def effective_min_isr(self) -> int:
        return min(self.min_isr, len(self.replicas))

    @property
    def under_min_isr(self) -> bool:
        return len(self._agreement.state.isr) < min(self.min_isr, len(self.replicas))

    @property
    def offset_available(self) -> bool:
        """False after an election until the high watermark has reached the epoch's start (KIP-207)."""
        return self.high_watermark >= self.epoch_start

    def step(self, event: PartitionEvent, now_ms: int) -> list[PartitionEffect]:
        """Effects in the order in which they must happen."""
        match event:
            case FollowerFetched():
                return self._on_follower_fetched(event, now_ms)
            case UnnamedFetch():
                return self._on_unnamed_fetch(event)
            case LogAdvanced():
                return self._on_log_advanced(event, now_ms)
            case LeaderHighWatermark():
                return self._on_leader_high_watermark(event)
            case MetadataChanged():
                return self._on_metadata(event, now_ms)
            case LogReady():
                return self._on_log_ready(event, now_ms)
            case LogTruncated():
                return self._on_truncated(event)
            case LogStartMoved():
                self.log_start = max(self.log_start, event.log_start)
                return self._report_low_watermark()
            case LogFailed():
                return self._on_failed()
            case LogRecovered():
                return self._on_recovered(now_ms)
            case BrokersChanged():
                self._eligible = event.eligible
                return [*self._advance_high_watermark(now_ms), *self._report_low_watermark()]
            case SettingsChanged():
                self.durable, self.flush_messages = event.durable, event.flush_messages
                return self._advance_high_watermark(now_ms)
            case MinIsrChanged():
                self.min_isr = event.min_isr
                return self._advance_high_watermark(now_ms)
            case IsrAnswered():
                return self._on_isr_answered(event, now_ms)
            case Tick():
                return [*self._shrink(now_ms), *self._advance_high_watermark(now_ms)]
            case _:
                assert_never(event)

    # --- leadership ---

    def _on_metadata(self, event: MetadataChanged, now_ms: int) -> list[PartitionEffect]:
        if event.leader_epoch < self.leader_epoch or event.partition_epoch < self.partition_epoch:
            return []  # an answer to AlterPartition already brought a newer state
        self._may_lead = frozenset((*event.isr, *event.elr))
        if event.partition_epoch == self.partition_epoch:  # an answer already brought this state, without its ELR
            return self._report_low_watermark()
        new_epoch = event.leader_epoch > self.leader_epoch
        self.leader, self.replicas = event.leader, event.replicas
        self._others = tuple(node for node in event.replicas if node != self.node_id)
        self.leader_epoch = event.leader_epoch
        self._agreement.commit(event.isr, event.partition_epoch)
        if self.failed:
            return []
        if new_epoch or self.role is Role.OFFLINE:
            return self._begin(now_ms)
        self._restart_progress(now_ms)
        return self._advance_high_watermark(now_ms)

    def _begin(self, now_ms: int) -> list[PartitionEffect]:
        lost: list[PartitionEffect] = [LeadershipLost()] if self.role is Role.LEADER else []
        self.ready = False
        self.followers = {}
        if self.leader == self.node_id:
            if self.leader_epoch == self._failed_epoch:
                self.role = Role.OFFLINE  # followers may hold its records that this log lost: no offset is given twice
                return lost
            self.role = Role.LEADER
            self._restart_progress(now_ms)
            return [*lost, TakeLeadership(self.leader_epoch)]
        self.role = Role.FOLLOWER
        return [*lost, Follow(self.leader, self.leader_epoch)]

    def _restart_progress(self, now_ms: int) -> None:
        """Members of the ISR have the lag time, from now on, to catch up; the progress of others is forgotten."""
        if self.role is not Role.LEADER:
            return
        isr = self.isr_state.isr
        before, self.followers = self.followers, {}
        for node in self._others:
            known = before.get(node)
            if known is not None and node not in isr:  # the start of a log never falls while it is in the ELR
                known = FollowerProgress(log_start=known.log_start) if node in self._may_lead else None
            self.followers[node] = known or FollowerProgress()
            if node in isr:
                self.followers[node].last_caught_up_ms = now_ms

    def _on_log_ready(self, event: LogReady, now_ms: int) -> list[PartitionEffect]:
        self.log_start, self.end_offset, self.synced_end = event.log_start, event.end_offset, event.synced_end
        self.unstable = event.unstable
        if not self._opened:
            self._opened = True
            self.high_watermark = event.high_watermark
        self.high_watermark = max(self.log_start, min(self.high_watermark, self.end_offset))
        if event.leader_epoch != self.leader_epoch or self.role is Role.OFFLINE:
            return []  # this was for an older epoch, or for none yet; another LogReady follows
        self.ready = True
        self.epoch_start = event.epoch_start
        if self.role is not Role.LEADER:
            return []
        return [*self._advance_high_watermark(now_ms), LeaderElected(self.leader_epoch)]

    def _on_failed(self) -> list[PartitionEffect]:
        if self.failed:
            return []
        before = self.role
        if before is Role.LEADER:
            self._failed_epoch = self.leader_epoch
        self.role, self.ready, self.failed = Role.OFFLINE, False, True
        self.followers = {}
        self._agreement.withdraw()
        return [LeadershipLost(), WentOffline()] if before is Role.LEADER else [WentOffline()]

    def _on_recovered(self, now_ms: int) -> list[PartitionEffect]:
        """Take up what the metadata says now. A leadership that failed is over: it waits for a later leader epoch."""
        if not self.failed:
            return []
        self.failed = False
        return [] if self.leader_epoch == NO_EPOCH else self._begin(now_ms)

    # --- the log ---

    def _on_log_advanced(self, event: LogAdvanced, now_ms: int) -> list[PartitionEffect]:
        assert event.synced_end <= event.end_offset, event
        if event.end_offset >= self.end_offset:
            self.end_offset, self.unstable = event.end_offset, event.unstable
        self.synced_end = max(self.synced_end, event.synced_end)
        return self._advance_high_watermark(now_ms)

    def _on_truncated(self, event: LogTruncated) -> list[PartitionEffect]:
        assert not self.is_leader, "a leader never truncates"
        self.log_start, self.end_offset, self.unstable = event.log_start, event.end_offset, event.unstable
        self.synced_end = min(self.synced_end, self.end_offset)
        self.high_watermark = max(self.log_start, min(self.high_watermark, self.end_offset))
        return []

    # --- the high watermark ---

    def _advance_high_watermark(self, now_ms: int) -> list[PartitionEffect]:
        if not self.is_leader or self.under_min_isr:
            return []
        ends = self._counted_ends(now_ms)
        return self._raise_high_watermark(high_watermark(ends, len(ends)))

    def _counted_ends(self, now_ms: int) -> list[Offset]:
        """The ends of this replica and of all followers in the maximal ISR or about to join it.

        Without the latter, a follower that has just caught up could not join while records keep coming.
        """
        maximal = self._agreement.state.maximal
        return [self.counted_end] + [
            progress.end_offset
            for node, progress in self.followers.items()
            if node in maximal
            or (
                progress.end_offset != UNKNOWN
                and self._is_eligible(node)
                and progress.is_caught_up(self.end_offset, now_ms, self._lag_time_max_ms)
            )
        ]

    def _on_leader_high_watermark(self, event: LeaderHighWatermark) -> list[PartitionEffect]:
        if not self.is_follower:
            return []
        return self._raise_high_watermark(min(event.high_watermark, self.end_offset))

    def _raise_high_watermark(self, offset: Offset) -> list[PartitionEffect]:
        if offset <= self.high_watermark:
            return []
        assert offset <= self.end_offset, f"high watermark {offset} past the log's end {self.end_offset}"
        self.high_watermark = offset
        return [HighWatermarkMoved(offset)]

    # --- the low watermark ---

    @property
    def low_watermark(self) -> Offset:
        """The smallest log start of this replica and the followers that count; -1 while that of one is unknown.

        Those count that are alive, and those that may lead without loss, alive or not: otherwise records whose deletion
        was acknowledged would come back with such a leader.
        """
        counted = {*self._eligible, *self._may_lead, *self._agreement.state.maximal}
        return min([self.log_start, *(one.log_start for node, one in self.followers.items() if node in counted)])

    def _report_low_watermark(self) -> list[PartitionEffect]:
        if not self.is_leader:
            return []
        low_watermark = self.low_watermark
        if low_watermark == self._low_watermark_reported:
            return []
        self._low_watermark_reported = low_watermark
        return [LowWatermarkMoved(low_watermark)] if low_watermark != UNKNOWN else []

    # --- followers and the ISR ---

    def _on_follower_fetched(self, event: FollowerFetched, now_ms: int) -> list[PartitionEffect]:
        assert self.is_leader, "only a leader is fetched from"
        progress = self.followers.get(event.replica_id)
        if progress is None or event.broker_epoch < self._eligible.get(event.replica_id, -1):
            return []  # not a replica of this partition, or an earlier process of that broker (KIP-903)
        progress.fetched(event.fetch_offset, event.broker_epoch, self.end_offset, now_ms)
        progress.log_start = event.log_start
        return [
            *self._expand(event.replica_id),
            *self._advance_high_watermark(now_ms),
            *self._report_low_watermark(),
        ]

    def _on_unnamed_fetch(self, event: UnnamedFetch) -> list[PartitionEffect]:
        """It counts only after the same process has named the partition in a fetch of this leadership."""
        progress = self.followers.get(event.replica_id)
        if progress is not None and progress.end_offset != UNKNOWN and progress.broker_epoch == event.broker_epoch:
            progress.fetched_unnamed(event.at_ms)
        return []

    def _is_eligible(self, node: NodeId) -> bool:
        progress = self.followers[node]
        return self._eligible.get(node) == progress.broker_epoch

    def _may_join(self, node: NodeId) -> bool:
        progress = self.followers[node]
        end = progress.end_offset
        has_all = end != UNKNOWN and end >= self.high_watermark and end >= self.epoch_start
        return has_all and max(0, progress.log_start) >= self.log_start and self._is_eligible(node)

    def _expand(self, node: NodeId) -> list[PartitionEffect]:
        state = self._agreement.state
        if not isinstance(state, Committed) or node in state.isr or not self._may_join(node):
            return []
        return [self._propose(PendingExpand(state.isr, node))]

    def _shrink(self, now_ms: int) -> list[PartitionEffect]:
        state = self._agreement.state
        if not self.is_leader or not isinstance(state, Committed):
            return []
        leaving = tuple(node for node in state.isr if node != self.node_id and self._is_behind(node, now_ms))
        return [self._propose(PendingShrink(state.isr, leaving))] if leaving else []

    def _is_behind(self, node: NodeId, now_ms: int) -> bool:
        progress = self.followers.get(node)
        return progress is None or not progress.is_caught_up(self.end_offset, now_ms, self._lag_time_max_ms)

    def _propose(self, change: PendingExpand | PendingShrink) -> ProposeIsr:
        return self._agreement.propose(change, self.leader_epoch, self._epoch_seen)

    def _epoch_seen(self, node: NodeId) -> BrokerEpoch:
        if node == self.node_id or node not in self.followers:
            return -1  # the request itself carries the leader's broker epoch
        return self.followers[node].broker_epoch

    def _on_isr_answered(self, event: IsrAnswered, now_ms: int) -> list[PartitionEffect]:
        match self._agreement.answered(event, self.leader_epoch):
            case ProposalStatus.SETTLED:
                self._may_lead |= frozenset(self.isr_state.isr)  # who has left may be in the ELR: the metadata says it
                return self._advance_high_watermark(now_ms)
            case ProposalStatus.RETRY:
                return [event.proposal]
            case ProposalStatus.PENDING:
                return []

    def check_invariants(self) -> None:
        """After every step, also of a running broker: it takes a microsecond of the four of a step, and a broker must
        not go on with a high watermark that is wrong."""
        assert self.log_start <= self.last_stable_offset <= self.high_watermark <= self.end_offset, vars(self)
        assert self.synced_end <= self.end_offset, vars(self)
        self._agreement.check_invariants()
        if self.role is Role.LEADER:
            assert self.leader == self.node_id and self.node_id in self.isr_state.isr, vars(self)
            assert self.node_id in self.isr_state.maximal, vars(self)
            assert tuple(self.followers) == self._others, vars(self)
        else:
            assert not self.followers, vars(self)
