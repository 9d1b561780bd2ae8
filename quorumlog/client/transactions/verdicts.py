"""What an error code of a transaction's call means to its producer (KIP-1050). Pure.

The classes are those of KIP-1050: retriable, abortable, and fatal for this producer. Unlike Kafka's client, an error
that is in no table is abortable while the transaction is open: to abort is always safe, and if the abort is refused,
too, the producer ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from quorumlog.errors import ErrorCode


class Verdict(Enum):
    """What to do about one answer."""

    DONE = "done"
    SOON = "ask again soon"  # the transaction before this one is being completed
    LATER = "ask again"
    ELSEWHERE = "ask another broker"
    ABORT = "abort the transaction"
    FENCED = "another producer has taken over"
    FATAL = "give up"


SOON = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})
ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
FENCED = frozenset({ErrorCode.PRODUCER_FENCED})
FENCED_AT_THE_COORDINATOR = FENCED | {ErrorCode.INVALID_PRODUCER_EPOCH}
FATAL = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
# A request that was answered so may have been carried out.
IN_DOUBT = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
ADVICE = {
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "transaction_timeout_ms is above the cluster's transaction.max.timeout.ms",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the cluster has forgotten this producer; make a new one",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the cluster does not allow this transactional_id",
    ErrorCode.ILLEGAL_GENERATION: "the group has rebalanced; the partitions may belong to another member now",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has removed this member",
    ErrorCode.FENCED_INSTANCE_ID: "another member has taken over this group_instance_id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "it may have been open for longer than transaction_timeout_ms",
    ErrorCode.TRANSACTION_ABORTABLE: "it may have been open for longer than transaction_timeout_ms",
    ErrorCode.INVALID_TXN_STATE: "it may have been open for longer than transaction_timeout_ms",
}


def while_open(code: ErrorCode) -> Verdict:
    """Of what extends an open transaction: partitions, offsets, records."""
    if code in FENCED:
        return Verdict.FENCED
    if code in FATAL:
        return Verdict.FATAL
    return _again(code) or Verdict.ABORT


def at_the_end(code: ErrorCode) -> Verdict:
    """Of InitProducerId and EndTxn, whose answer decides whether this producer is still the one. ABORT: only of
    codes that say that nothing was ended."""
    if code in FENCED_AT_THE_COORDINATOR:
        return Verdict.FENCED
    if code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE):
        return Verdict.ABORT
    return _again(code) or Verdict.FATAL


def _again(code: ErrorCode) -> Verdict | None:
    if code is ErrorCode.NONE:
        return Verdict.DONE
    if code in SOON:
        return Verdict.SOON
    if code in ELSEWHERE:
        return Verdict.ELSEWHERE
    if code.retriable or code is ErrorCode.OPERATION_NOT_ATTEMPTED:
        return Verdict.LATER
    return None


def explained(code: ErrorCode, message: str = "") -> str:
    """The code with what the broker said, or with what it means most often."""
    more = message or ADVICE.get(code, "")
    return f"{code.name}: {more}" if more else code.name


def partition_codes(response: Any) -> Iterator[tuple[str, int, ErrorCode]]:
    """topic, partition, error: of the topics of an answer."""
    for topic in response.topics:
        for one in topic.partitions:
            yield topic.name, getattr(one, "index", -1), ErrorCode(one.error_code)


def worst(codes: Iterator[ErrorCode]) -> ErrorCode:
    """The code that decides: one that ends something before one that is repeated."""
    order = (Verdict.DONE, Verdict.SOON, Verdict.LATER, Verdict.ELSEWHERE, Verdict.ABORT, Verdict.FATAL, Verdict.FENCED)
    return max(codes, key=lambda code: order.index(while_open(code)), default=ErrorCode.NONE)
