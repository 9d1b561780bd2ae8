"""A slice of records that is larger than one batch of the log: a metadata transaction (KIP-866).

Each of its batches is appended when the one before is committed, so one of them at a time waits for the quorum. The
controller appends nothing else meanwhile. Readers of the log hold the records back until the EndTransactionRecord in
the last batch (quorumlog_quorum/metadata/transactions.py), and the tip moves only when that is appended. If leadership
is lost before, the next active controller aborts what is in the log: nothing of the operation will ever take effect,
and its caller may be told so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import BeginTransactionRecord, EndTransactionRecord
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.engine.limits import MAX_TRANSACTION_BYTES
from quorumlog_quorum.controller.engine.operation import Operation, Slice
from quorumlog_quorum.metadata.features import TRANSACTION_LEVEL
from quorumlog_quorum.metadata.frame import encode_record


class Transaction:
    """The operation's slice `piece` on its way into the log. batches: values of records; two or more."""

    def __init__(self, operation: Operation, piece: Slice, batches: Sequence[Sequence[bytes]]) -> None:
        assert len(batches) > 1, "one batch is atomic without a transaction"
        self.operation, self.piece = operation, piece
        self._batches = deque(batches)

    @property
    def next_batch(self) -> Sequence[bytes]:
        return self._batches[0]

    def appended(self) -> None:
        """The next batch is in the log."""
        self._batches.popleft()

    @property
    def is_whole(self) -> bool:
        """All of it is in the log, committed or not."""
        return not self._batches


def in_batches(name: str, values: list[bytes], level: int, config: ControllerConfig) -> list[list[bytes]]:
    """One batch, or those of a transaction. Raises ApiError(RECORD_LIST_TOO_LARGE).

    name: of the operation. level: the lower one of the metadata.versions in force before and after it. Below level 6
    there are no transactions, and the log itself refuses what is too large for a batch.
    """
    size = sum(len(value) for value in values)
    if level < TRANSACTION_LEVEL or (len(values) <= config.max_batch_records and size <= config.max_batch_bytes):
        return [values]
    if size > MAX_TRANSACTION_BYTES or max(len(value) for value in values) > config.max_batch_bytes // 2:
        text = f"{size} bytes in one change of metadata, at most {MAX_TRANSACTION_BYTES} are allowed"
        raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, text)
    begin = encode_record(BeginTransactionRecord(name=name), level)
    return _cut([begin, *values, encode_record(EndTransactionRecord(), level)], config)


def _cut(values: list[bytes], config: ControllerConfig) -> list[list[bytes]]:
    """Batches as large as they may be."""
    batches: list[list[bytes]] = [[]]
    size = 0
    for value in values:
        if len(batches[-1]) >= config.max_batch_records or size + len(value) > config.max_batch_bytes:
            batches.append([])
            size = 0
        batches[-1].append(value)
        size += len(value)
    return batches
