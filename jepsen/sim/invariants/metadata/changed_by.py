"""changes-are-signed: from metadata.version 8 on, what clients ask for ends with who asked; before that nothing does.

Only clients make and delete topics, and change levels after the first ones: these records show whether the rule holds.
A batch or a transaction is judged by the level that is in force after it: the one that raises the level is signed, the
one that lowers it is not.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.truth.log_mirror import LogMirror
from quorumlog.ids import Offset
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ChangedByRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog.records import decode_batch, headers
from quorumlog_quorum.metadata.features import METADATA_VERSION
from quorumlog_quorum.metadata.frame import decode_record

FIRST_SIGNED = 8
SIGNED, UNSIGNED = "signed changes", "changes before signatures"


class ChangesAreSigned(Invariant):
    """signed, unsigned: batches and transactions that only clients ask for."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._level: int | None = None  # until the first levels, which the first controller writes
        self._transaction: list[MetadataRecord] | None = None
        self.signed, self.unsigned = 0, 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {SIGNED: self.signed, UNSIGNED: self.unsigned}

    def on_growth(self, mirror: LogMirror, before: Offset, after: Offset) -> None:
        content = mirror.content(before, after)
        assert content is not None, f"{mirror.path}: no bytes from {before} to {after}"
        for header in headers(content):
            if header.is_control:
                continue
            records = [decode_record(record.value or b"") for record in decode_batch(content, header)]
            if isinstance(records[0], BeginTransactionRecord):
                self._transaction = []
            if self._transaction is None:
                self._judge(records, header.base_offset)
                continue
            self._transaction += records
            if isinstance(records[-1], EndTransactionRecord | AbortTransactionRecord):
                whole, self._transaction = self._transaction, None
                if isinstance(records[-1], EndTransactionRecord):
                    self._judge(whole[1:-1], header.base_offset)

    def _judge(self, records: list[MetadataRecord], offset: Offset) -> None:
        clients = TopicRecord | RemoveTopicRecord
        by_client = any(
            isinstance(one, clients if self._level is None else clients | FeatureLevelRecord) for one in records
        )
        for record in records:
            if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
                self._level = record.level
        signatures = [place for place, record in enumerate(records) if isinstance(record, ChangedByRecord)]
        if (self._level or 1) < FIRST_SIGNED:
            self.unsigned += by_client
            wanted: list[list[int]] = [[]]
        else:
            self.signed += by_client
            wanted = [[len(records) - 1]] if by_client else [[], [len(records) - 1]]
        if signatures not in wanted:
            what = f"the change at {offset} has signatures at {signatures} of {len(records)}, level {self._level}"
            self._findings.broken("changes-are-signed", what)
