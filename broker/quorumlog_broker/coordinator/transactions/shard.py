"""The core of one partition of `__transaction_state`: its transactional ids, and every call that concerns them.

A call changes durable state by records only, and `replay` is the one function that applies them: a live core and one
that has just loaded the log hold the same. A state that is not committed counts for nothing: calls of its id are told
to come again, and no marker is written. The rules are those of Kafka's TransactionCoordinator (KIP-98, KIP-360,
KIP-588, KIP-664, KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.joint import (
    AbortJointRequest,
    BeginJointRequest,
    CommitJointRequest,
    ForgetJointRequest,
    ListedJointGroup,
)
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    ListedTransaction,
    ListTransactionsRequest,
    TransactionToExtend,
)
from quorumlog.records.coordinator import TRANSACTION_TYPES, CoordinatorRecord, decode
from quorumlog.records.coordinator.joint import Cause
from quorumlog.settings.transactions import TransactionConfig
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.counts import CoordinatorCounts
from quorumlog_broker.coordinator.transactions.describe import Describe
from quorumlog_broker.coordinator.transactions.end import Ending
from quorumlog_broker.coordinator.transactions.expiry import Expiry
from quorumlog_broker.coordinator.transactions.init_producer import InitProducer
from quorumlog_broker.coordinator.transactions.joint.abort import Abort
from quorumlog_broker.coordinator.transactions.joint.begin import Begin
from quorumlog_broker.coordinator.transactions.joint.commit import Commit
from quorumlog_broker.coordinator.transactions.joint.expiry import JointExpiry
from quorumlog_broker.coordinator.transactions.joint.given_up import GivenUp
from quorumlog_broker.coordinator.transactions.joint.listing import Listing
from quorumlog_broker.coordinator.transactions.joint.preparing import Preparing
from quorumlog_broker.coordinator.transactions.partitions import Partitions
from quorumlog_broker.coordinator.transactions.state.completion import Completion, DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.states import (
    JointSweepGoesOn,
    PreparesGoOn,
    States,
    SweepGoesOn,
    TimesOut,
    TransactionTurn,
    WaitEnds,
)
from quorumlog_broker.coordinator.transactions.state.table import (
    ONGOING,
    PREPARE_COMMIT,
    Partition,
    TransactionTable,
)
from quorumlog_broker.coordinator.turn import MAX_RECORD_BYTES, Answer, Call, Write

IDS_A_STEP = 64  # of the end of a load


class TransactionShard:
    """new_producer_id: one that was never given out; None while the controller is asked for more. partition_exists:
    in this broker's metadata. coordinator_epoch: leader epoch of the partition in which this core appends. partitions:
    that `__transaction_state` has. joint_version: the level of that feature, now.

    Each call is answered once, by `take`. Every method may write records; the owner appends them in their order before
    it calls `committed`.
    """

    def __init__(
        self,
        config: TransactionConfig,
        new_producer_id: Callable[[], int | None],
        partition_exists: Callable[[str, int], bool],
        coordinator_epoch: Epoch,
        partitions: Callable[[], int],
        joint_version: Callable[[], int],
        next_offset: Offset = 0,
    ) -> None:
        self._table = TransactionTable()
        self._turn = TransactionTurn(TRANSACTION_TYPES, next_offset, self._replay_writes)
        self._states = States(self._turn, self._table, config, coordinator_epoch, joint_version)
        self._completion = Completion(self._turn, self._table, self._states)
        self._ending = Ending(self._turn, self._table, self._states, self._completion, new_producer_id)
        self._init = InitProducer(self._turn, config, self._table, self._states, self._ending, new_producer_id)
        self._partitions = Partitions(self._turn, self._table, self._states, partition_exists)
        self._expiry = Expiry(self._turn, config, self._table)
        self._describe = Describe(self._turn, self._table, self._states)
        self._preparing = Preparing(self._turn, self._table, self._states, self._completion)
        given_up = GivenUp(self._turn, config.joint, self._table)
        self._begin = Begin(self._turn, config, self._table, self._states, new_producer_id, partitions, given_up)
        self._commit = Commit(self._turn, config.joint, self._table, self._states, self._preparing)
        self._abort = Abort(self._turn, self._table, self._states, self._preparing, given_up)
        self._listing = Listing(self._turn, self._table, self._states, self._preparing)
        self._joint_expiry = JointExpiry(self._turn, config.joint, self._table, self._preparing, given_up)

    # --- time, records, answers ---

    def at(
        self, now_ms: int, wall_ms: int, transaction_version: int, largest_record_bytes: int = MAX_RECORD_BYTES
    ) -> None:
        """The time of what follows, the level of the feature transaction.version, and the largest record that the log
        takes now: it bounds the partitions of a transaction."""
        self._turn.now_ms, self._turn.wall_ms = now_ms, wall_ms
        self._turn.largest_record_bytes = largest_record_bytes
        self._states.transaction_version = transaction_version

    def count_in(self, counts: CoordinatorCounts) -> None:
        """Where this core counts what it does; the counts outlive it."""
        self._turn.counts = counts

    def take(self) -> tuple[list[Write], list[Answer]]:
        """What was decided since the last call, in order."""
        writes, self._turn.writes = self._turn.writes, []
        answers, self._turn.answers = self._turn.answers, []
        return writes, answers

    @property
    def has_decided(self) -> bool:
        """`take_decided` has something to do."""
        return self._completion.has_waiting

    def take_decided(self, limit: int) -> list[DecidedTransaction]:
        """The next transactions, `limit` at most, whose markers have to be written; each of these is told with
        `marker_written` or `marker_refused`. May write records, and may give fewer although more are there."""
        decided = self._completion.take(limit)
        self._commit.look()
        return decided

    def unconfirmed(self, transactional_id: str) -> DecidedTransaction | None:
        """See `Completion.unconfirmed`."""
        return self._completion.unconfirmed(transactional_id)

    def committed(self, high_watermark: Offset) -> None:
        """exclusive; of the leader epoch in which this core appends."""
        self._turn.committed(high_watermark)

    def resigned(self) -> list[int]:
        """The leadership has ended: the calls that are parked, and that nobody answers any more."""
        return self._turn.dropped_calls() + self._commit.dropped_calls()

    @property
    def given_up(self) -> frozenset[str]:
        """Ids whose markers were refused: a newer coordinator ends their transactions, or they hang."""
        return frozenset(self._completion.given_up)

    def next_timer_ms(self) -> int | None:
        return self._turn.timers.next_ms()

    def timers_due(self) -> None:
        """Run every timer whose time has come."""
        for key in self._turn.timers.due(self._turn.now_ms):
            match key:
                case TimesOut(transactional_id):
                    self._timed_out(transactional_id)
                case SweepGoesOn():
                    self._expiry.go_on()
                case JointSweepGoesOn():
                    self._joint_expiry.go_on()
                case PreparesGoOn():
                    self._preparing.go_on()
                case WaitEnds():
                    self._commit.wait_ended()

    def _timed_out(self, transactional_id: str) -> None:
        value = self._table.get(transactional_id)
        if value is None or value.transaction_status != ONGOING:
            return
        error = self._states.refusal(transactional_id)
        if error == ErrorCode.NONE and value.joint is not None:
            self._preparing.abort(transactional_id, Cause.TIMED_OUT)
        elif error != ErrorCode.NONE or self._ending.fence(transactional_id) != ErrorCode.NONE:
            self._states.arm(transactional_id, 0)  # at the next look

    # --- replay ---

    def replay_bytes(self, _offset: Offset, key: bytes, value: bytes | None) -> None:
        self.replay(decode(TRANSACTION_TYPES, key, value))

    def _replay_writes(self, offset: Offset, writes: Sequence[Write], _said: CoordinatorRecord | None) -> None:
        """By their bytes: those of an older version say less than their writer knew."""
        for at, write in enumerate(writes, offset):
            self.replay_bytes(at, write.key, write.value)

    def replay(self, record: CoordinatorRecord) -> None:
        """One record of the log, in the order of offsets."""
        self._table.replay_record(record)

    def loaded(self, next_offset: Offset) -> None:
        """The log has been replayed. Calls are answered once the high watermark has come here.

        Decided transactions are completed then, and open ones go on timing out.
        """
        for _ in self.load_ids(next_offset):
            pass

    def load_ids(self, next_offset: Offset) -> Sliced[None]:
        """`loaded` in steps of `IDS_A_STEP` ids. No call may come before the last one."""
        self._turn.loaded(next_offset)
        for number, (transactional_id, value) in enumerate(self._table.items()):
            if number % IDS_A_STEP == 0:
                yield
            self._states.load(transactional_id, value)
            if not self._table.is_preparing(transactional_id):
                self._completion.load(transactional_id, value)
        self._preparing.load()

    # --- calls ---

    def init_producer_id(self, call: Call, request: InitProducerIdRequest) -> None:
        """Of a transactional id. Answered with InitProducerIdResponse."""
        self._init.call(call, request)

    def add_partitions(self, call: Call, request: TransactionToExtend) -> None:
        """Answered with ExtendedTransaction. Of a broker's batch, each transaction is a call of its own."""
        self._partitions.add(call, request)

    def add_offsets(self, call: Call, request: AddOffsetsToTxnRequest, index: int) -> None:
        """index: of the partition of `__consumer_offsets` that has the group. Answered with AddOffsetsToTxnResponse."""
        self._partitions.add_offsets(call, request, index)

    def end_transaction(self, call: Call, request: EndTxnRequest) -> None:
        """Answered with EndTxnResponse once the decision is committed; the markers follow."""
        self._ending.call(call, request)

    def begin_joint(self, call: Call, request: BeginJointRequest) -> None:
        """Answered with BeginJointResponse."""
        self._begin.call(call, request)

    def commit_joint(self, call: Call, request: CommitJointRequest) -> Sliced[None] | None:
        """Answered with CommitJointResponse, once the decision is committed and perhaps its markers are written. What
        is left to do until it decides, in steps."""
        return self._commit.call(call, request)

    def abort_joint(self, call: Call, request: AbortJointRequest) -> Sliced[None] | None:
        """Answered with AbortJointResponse. What is left to do of it, in steps."""
        return self._abort.call(call, request)

    def forget_joint(self, call: Call, request: ForgetJointRequest) -> None:
        """Answered with ForgetJointResponse."""
        self._listing.forget(call, request)

    def list_joint(self) -> Sliced[tuple[ListedJointGroup, ...]]:
        """In slices. See `Listing.list`."""
        return self._listing.list()

    @property
    def open_count(self) -> int:
        """Transactions that are not decided. Any thread may ask."""
        return self._table.open_count()

    @property
    def joint_counts(self) -> tuple[int, int]:
        """Joint groups, and their open transactions."""
        return len(self._table.joint_groups), self._table.open_children

    def commits_under_way(self) -> Sliced[bool]:
        """Whether a commit is decided, and not all of its markers are known to be written. None may begin meanwhile."""
        pace = Pace()
        for transactional_id in self._table.ids():
            value = self._table.get(transactional_id)
            if value is not None and value.transaction_status == PREPARE_COMMIT:
                return True
            if pace.is_over():
                yield
        return False

    def describe(self, call: Call, transactional_id: str) -> None:
        """Answered with DescribedTransaction."""
        self._describe.describe(call, transactional_id)

    def list(
        self, request: ListTransactionsRequest, matches: Callable[[str], bool] | None = None
    ) -> Sliced[tuple[ListedTransaction, ...]]:
        """In slices. See `Describe.list`."""
        return self._describe.list(request, matches)

    # --- what comes from elsewhere ---

    def marker_written(self, transactional_id: str, producer_epoch: int, partition: Partition) -> None:
        """See `Completion.written`."""
        self._completion.written(transactional_id, producer_epoch, partition)
        self._commit.look()

    def marker_refused(self, transactional_id: str, producer_epoch: int) -> None:
        """See `Completion.refused`."""
        self._completion.refused(transactional_id, producer_epoch)

    def expire(self) -> None:
        """Due each `remove_interval_ms`."""
        self._expiry.begin()
        self._joint_expiry.begin()
