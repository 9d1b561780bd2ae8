"""What the application of a transactional producer is told. The class says what to do next."""

from __future__ import annotations

from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode


class TransactionStateError(QuorumlogError):
    """A call at the wrong time, such as `send` before `begin`. Nothing was done."""


class TransactionAborted(QuorumlogError):
    """Of a record: its transaction was aborted before the record was acknowledged. No reader of committed records sees
    it."""


class TransactionFailed(QuorumlogError):
    """This transaction cannot be committed. Abort it; then the producer can begin the next one.

    code: what the cluster answered; None: a record was not delivered for another reason. __cause__: that reason.
    """

    def __init__(self, message: str, code: ErrorCode | None = None) -> None:
        super().__init__(message)
        self.code = code


class TransactionTimeout(QuorumlogError):
    """The transaction's coordinator did not answer within `max_block_ms`. Make the same call again.

    outcome_unknown: a commit was sent, so the transaction may be committed; it cannot be aborted any more.
    """

    def __init__(self, message: str, *, outcome_unknown: bool) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class FatalTransactionError(QuorumlogError):
    """The producer can do nothing more: close it, and make a new one if there is to be one.

    outcome_unknown: the transaction that was being committed may be committed.
    """

    def __init__(self, message: str, code: ErrorCode, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.outcome_unknown = outcome_unknown


class ProducerFenced(FatalTransactionError):
    """Another producer has taken over the transactional id and goes on with the work, or the coordinator has aborted a
    transaction that was open for longer than `transaction_timeout_ms`. This producer must stop; a new one may begin."""
