"""The states of a transactional producer, and the calls that lead from one to the next. Pure.

    UNREADY -> READY -> OPEN -> COMMITTING -> READY
                           \\-> ABORTING   -> READY | UNREADY

FAILED is the end of every path on which another producer has taken over. The owner asks `next_call` what to send, and
tells `answered` or `lost`; it may repeat every call. Rules, and why:

1. A cluster of transaction.version 2 (TV2, KIP-890) adds a partition when its leader gets the first batch, and gives an
   epoch for each transaction with the answer to EndTxn. Otherwise (TV1) a partition is added before its first batch is
   sent, and the epoch stays.
2. An abort may leave calls on their way that nobody waits for. Only an epoch that is newer than theirs keeps them out
   of the next transaction. Where the answer brings none, InitProducerId raises it (KIP-360): state UNREADY.
3. A commit that was sent and not answered can only be repeated. An abort could be told that all is well while the
   transaction is committed.
4. A transaction of which the coordinator cannot know has no end to tell it: nothing is sent.
5. A failed record or offset makes the whole transaction fail; it can be aborted only. `cause` is the first failure.
6. A commit may be answered with "no such transaction". With an epoch for each transaction that is the truth: one that
   was carried out has raised the epoch. Otherwise a late InitProducerId may have hidden that an earlier try was.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from quorumlog.client.batches.numbering import Identity
from quorumlog.client.errors import RequestFailed
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.transactions.errors import (
    FatalTransactionError,
    ProducerFenced,
    TransactionFailed,
    TransactionStateError,
)
from quorumlog.client.transactions.requests import (
    add_offsets,
    add_partitions,
    commit_offsets,
    end_transaction,
    init_producer,
)
from quorumlog.client.transactions.verdicts import (
    IN_DOUBT,
    Verdict,
    at_the_end,
    explained,
    partition_codes,
    while_open,
    worst,
)
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition

EPOCH_PER_TRANSACTION = 2  # level of transaction.version


class Phase(Enum):
    """What the transactional id's producer is about."""

    UNREADY = "without an epoch"
    READY = "between transactions"
    OPEN = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    FAILED = "failed"


class Step(Enum):
    """The calls, in the order in which a transaction needs them."""

    INIT = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_GROUP = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    COMMIT = "EndTxn (commit)"
    ABORT = "EndTxn (abort)"


class Call(NamedTuple):
    """group_id: the group whose coordinator gets the request; None: the transactional id's coordinator does."""

    step: Step
    request: Any
    group_id: str | None = None


class Offsets(NamedTuple):
    """Offsets to commit with the transaction: by partition, the first one that is not yet read."""

    group: GroupMetadata
    offsets: Mapping[TopicPartition, int]


class TransactionMachine:
    """level: of the feature transaction.version; set it while the producer is UNREADY."""

    def __init__(self, transactional_id: str, timeout_ms: int) -> None:
        self.transactional_id, self.timeout_ms = transactional_id, timeout_ms
        self.level = 0
        self.phase = Phase.UNREADY
        self.identity: Identity | None = None
        self.serial = 0  # transactions begun
        self.cause: Exception | None = None  # rule 5
        self.failure: FatalTransactionError | None = None
        self._wanted: dict[TopicPartition, None] = {}  # partitions to add
        self._added: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._offsets: Offsets | None = None
        self._is_known = False  # the coordinator may have heard of this transaction
        self._flushed = False
        self._commit_in_doubt = self._commit_under_way = False

    # --- steps of the application; each raises TransactionStateError, or the error that ended the producer ---

    def begin(self) -> None:
        self._check_alive()
        if self.phase is not Phase.READY:
            raise TransactionStateError(f"cannot begin a transaction while {self._now}")
        self.phase = Phase.OPEN
        self.serial += 1
        self.cause = None
        self._wanted.clear()
        self._added.clear()
        self._groups.clear()
        self._offsets = None
        self._is_known = self._flushed = self._commit_in_doubt = False

    def take_over(self, identity: Identity, level: int) -> None:
        """Join a transaction that is open already. It is ended elsewhere: `begin_commit` and `begin_abort` are not for
        it."""
        assert self.phase is Phase.UNREADY, "a producer takes a transaction over before its first call"
        self.identity, self.level, self.phase = identity, level, Phase.READY
        self.begin()

    def check_open(self) -> None:
        """Raises unless a record or offsets can join the transaction. TransactionFailed: it can be aborted only."""
        self._check_alive()
        if self.phase is not Phase.OPEN:
            raise TransactionStateError(f"no transaction is open: the producer is {self._now}; call begin() first")
        self._check_cause()

    def begin_commit(self) -> None:
        """What was sent has yet to be acknowledged: `flushed`. Again after a timeout."""
        self._check_alive()
        if self.phase is not Phase.COMMITTING:
            self.check_open()
        self.phase = Phase.COMMITTING

    def flushed(self) -> None:
        """Everything sent was acknowledged, or has failed. Raises TransactionFailed."""
        self._check_cause()
        if self.phase is not Phase.COMMITTING:
            raise TransactionStateError(f"another call has ended the transaction: the producer is {self._now}")
        self._flushed = True
        if not self._is_known:
            self.phase = Phase.READY  # rule 4

    def begin_abort(self) -> None:
        self._check_alive()
        if self.phase is Phase.COMMITTING and (self._commit_in_doubt or self._commit_under_way):
            raise TransactionStateError("the commit was sent and may have been carried out; call commit() again")
        if self.phase not in (Phase.OPEN, Phase.COMMITTING, Phase.ABORTING):
            raise TransactionStateError(f"there is no transaction to abort: the producer is {self._now}")
        self._wanted.clear()
        self._offsets = None
        self.phase = Phase.ABORTING if self._is_known else Phase.READY  # rule 4

    def add_offsets(self, offsets: Offsets) -> None:
        self.check_open()
        if self._offsets is not None:
            raise TransactionStateError("send_offsets is running already; wait for it")
        self._offsets = offsets

    # --- sending ---

    def admit(self, partition: TopicPartition) -> bool:
        """True if a batch for this partition may be sent now. Otherwise the partition is added first, if it can be."""
        if self.cause is not None or self.phase not in (Phase.OPEN, Phase.COMMITTING):
            return False
        if self.level >= EPOCH_PER_TRANSACTION or partition in self._added:
            self._is_known = True
            return True
        self._wanted[partition] = None
        return False

    def fail(self, error: Exception) -> None:
        """Rule 5: a record was not delivered, or something else went wrong. A fatal error ends the producer."""
        verdict = while_open(error.code) if isinstance(error, RequestFailed) else Verdict.ABORT
        if isinstance(error, FatalTransactionError):
            self._end(error)
        elif isinstance(error, RequestFailed) and verdict in (Verdict.FENCED, Verdict.FATAL):
            self._give_up(error.code, error.message)
        elif self.phase in (Phase.OPEN, Phase.COMMITTING) and self.cause is None:
            self.cause = error
            self.phase = Phase.OPEN
            self._wanted.clear()
            self._offsets = None

    @property
    def adds_partitions(self) -> bool:
        return bool(self._wanted)

    @property
    def commits_offsets(self) -> bool:
        return self._offsets is not None

    @property
    def is_in_doubt(self) -> bool:
        """A commit was sent, and it is not known whether it was carried out."""
        return self._commit_in_doubt

    # --- calls ---

    def next_call(self) -> Call | None:
        """The call to send now; None: there is nothing to ask. Repeat it until it is answered."""
        if self.phase is Phase.UNREADY:
            return Call(Step.INIT, init_producer(self))
        assert self.identity is not None or self.phase is Phase.FAILED
        if self._wanted:
            self._is_known = True
            return Call(Step.ADD_PARTITIONS, add_partitions(self, self._wanted))
        if self._offsets is not None:
            group = self._offsets.group
            self._is_known = True
            if self.level < EPOCH_PER_TRANSACTION and group.group_id not in self._groups:
                return Call(Step.ADD_GROUP, add_offsets(self, group.group_id))
            return Call(Step.COMMIT_OFFSETS, commit_offsets(self, *self._offsets), group.group_id)
        if self.phase is Phase.COMMITTING and self._flushed:
            self._commit_under_way = True
            return Call(Step.COMMIT, end_transaction(self, committed=True))
        if self.phase is Phase.ABORTING:
            return Call(Step.ABORT, end_transaction(self, committed=False))
        return None

    def lost(self, call: Call, *, was_sent: bool = True) -> None:
        """No answer came. was_sent: the request may have been carried out."""
        if call.step is Step.COMMIT:
            self._commit_under_way = False
            self._commit_in_doubt = self._commit_in_doubt or was_sent

    def answered(self, call: Call, response: Any) -> Verdict:
        """DONE: go on with `next_call`. SOON, LATER, ELSEWHERE: with the same call again. The others ended something.

        An answer to a call that is not wanted any more changes nothing.
        """
        match call.step:
            case Step.INIT:
                verdict = self._initialized(response)
            case Step.ADD_PARTITIONS:
                verdict = self._partitions_added(response)
            case Step.ADD_GROUP | Step.COMMIT_OFFSETS:
                verdict = self._offsets_answered(call, response)
            case Step.COMMIT:
                verdict = self._committed(response)
            case Step.ABORT:
                verdict = self._aborted(response)
        return verdict

    def _initialized(self, response: Any) -> Verdict:
        code = ErrorCode(response.error_code)
        verdict = at_the_end(code)
        if self.phase is not Phase.UNREADY:
            return Verdict.DONE
        if verdict is Verdict.DONE:
            self.identity = Identity(response.producer_id, response.producer_epoch)
            self.phase = Phase.READY
        elif verdict in (Verdict.FENCED, Verdict.FATAL, Verdict.ABORT):
            self._give_up(code, response.error_message)
        return verdict

    def _partitions_added(self, response: Any) -> Verdict:
        found = [(name, index, code) for one in response.results for name, index, code in partition_codes(one)]
        code = ErrorCode(response.error_code) or worst(code for _, _, code in found)
        added = {(name, index) for name, index, one in found if one is ErrorCode.NONE and (name, index) in self._wanted}
        self._added |= added
        for partition in added:
            del self._wanted[partition]
        verdict = self._extended(code, response.error_message, "a partition could not be added to the transaction")
        return Verdict.LATER if verdict is Verdict.DONE and self._wanted and not added else verdict

    def _offsets_answered(self, call: Call, response: Any) -> Verdict:
        code = ErrorCode(response.error_code)
        if call.step is Step.COMMIT_OFFSETS:
            code = code or worst(code for _, _, code in partition_codes(response))
        verdict = self._extended(code, response.error_message, "the offsets could not be committed")
        if verdict is Verdict.DONE and self._offsets is not None:
            if call.step is Step.ADD_GROUP:
                self._groups.add(call.request.group_id)
            else:
                self._offsets = None
        return verdict

    def _extended(self, code: ErrorCode, message: str, what: str) -> Verdict:
        verdict = while_open(code)
        if verdict is Verdict.ABORT:
            self.fail(TransactionFailed(f"{what}: {explained(code, message)}; abort the transaction", code))
        elif verdict in (Verdict.FENCED, Verdict.FATAL):
            self._give_up(code, message)
        return verdict

    def _committed(self, response: Any) -> Verdict:
        self._commit_under_way = False
        code = ErrorCode(response.error_code)
        verdict = at_the_end(code)
        if self.phase is not Phase.COMMITTING:
            return Verdict.DONE
        if verdict is Verdict.DONE:
            self._take_epoch(response)
            self.phase = Phase.READY
            self._commit_in_doubt = False
        elif verdict is Verdict.ABORT and self._commit_in_doubt and self.level < EPOCH_PER_TRANSACTION:
            self._give_up(code, "an earlier try of the commit may have been carried out")  # rule 6
            return Verdict.FATAL
        elif verdict is Verdict.ABORT:  # there was no such transaction, so nothing is committed
            what = f"the transaction could not be committed: {explained(code, response.error_message)}"
            self.fail(TransactionFailed(f"{what}; abort it", code))
        elif verdict in (Verdict.FENCED, Verdict.FATAL):
            self._give_up(code, response.error_message)
        elif code in IN_DOUBT:
            self._commit_in_doubt = True
        return verdict

    def _aborted(self, response: Any) -> Verdict:
        code = ErrorCode(response.error_code)
        verdict = at_the_end(code)
        if self.phase is not Phase.ABORTING:
            return Verdict.DONE
        if verdict is Verdict.DONE:
            self.phase = Phase.READY if self._take_epoch(response) else Phase.UNREADY  # rule 2
        elif verdict is Verdict.ABORT:  # it was not open
            if self._commit_in_doubt:
                self._give_up(code, "the commit was carried out after all")
                return Verdict.FATAL
            self.phase = Phase.UNREADY
            return Verdict.DONE
        elif verdict in (Verdict.FENCED, Verdict.FATAL):
            self._give_up(code, response.error_message)
        return verdict

    def _take_epoch(self, response: Any) -> bool:
        """True if the answer brings another epoch than the one of the transaction that has ended."""
        told = Identity(response.producer_id, response.producer_epoch)
        if told.producer_id < 0 or told == self.identity:
            return False
        self.identity = told
        return True

    # --- ends ---

    def _give_up(self, code: ErrorCode, message: str) -> None:
        doubt = self._commit_in_doubt
        if code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
            text = (
                f"another producer has taken over the transactional id {self.transactional_id!r}, or its transaction "
                f"was open for longer than transaction_timeout_ms ({explained(code, message)}); close this one"
            )
            self._end(ProducerFenced(text, code, outcome_unknown=doubt))
            return
        text = f"the producer of {self.transactional_id!r} cannot go on ({explained(code, message)}); close it"
        self._end(FatalTransactionError(text, code, outcome_unknown=doubt))

    def _end(self, error: FatalTransactionError) -> None:
        self.failure = self.failure or error
        self.phase = Phase.FAILED
        self._wanted.clear()
        self._offsets = None

    def _check_alive(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _check_cause(self) -> None:
        self._check_alive()
        if self.cause is not None:
            if isinstance(self.cause, TransactionFailed):
                raise self.cause
            code = getattr(self.cause, "code", None)
            text = f"the transaction cannot be committed, because something in it failed: {self.cause}; abort it"
            raise TransactionFailed(text, code) from self.cause

    @property
    def _now(self) -> str:
        return self.phase.value
