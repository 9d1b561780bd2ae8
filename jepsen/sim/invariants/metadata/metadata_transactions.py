"""No image of any node ends inside a metadata transaction (KIP-866).

Reads the committed log itself, record by record, and does not use the production rule for what is held back.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.truth.log_mirror import LogMirror
from quorumlog.ids import Offset
from quorumlog.messages.metadata_records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from quorumlog.records import decode_batch, headers
from quorumlog_quorum.metadata.frame import decode_record
from quorumlog_quorum.metadata.image import Image


class MetadataTransactions(Invariant):
    """begun, aborted: transactions in the committed log. begun_at: the offset of the open one's first record."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._inside: list[tuple[Offset, Offset]] = []  # (first, last) record of each one that has ended
        self.begun_at: Offset | None = None
        self.begun, self.aborted = 0, 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"metadata transactions": self.begun, "of them aborted": self.aborted}

    def on_growth(self, mirror: LogMirror, before: Offset, after: Offset) -> None:
        content = mirror.content(before, after)
        assert content is not None, f"{mirror.path}: no bytes from {before} to {after}"
        for header in headers(content):
            for record in () if header.is_control else decode_batch(content, header):
                match decode_record(record.value or b""):
                    case BeginTransactionRecord():
                        self.begun_at, self.begun = record.offset, self.begun + 1
                    case EndTransactionRecord() | AbortTransactionRecord() as end:
                        assert self.begun_at is not None, f"a transaction ends at {record.offset}, none is open"
                        self._inside.append((self.begun_at, record.offset))
                        self.begun_at = None
                        self.aborted += isinstance(end, AbortTransactionRecord)

    def on_published(self, host: str, image: Image) -> None:
        is_open = self.begun_at is not None and image.offset > self.begun_at
        if is_open or any(first < image.offset <= last for first, last in self._inside):
            what = f"{host} publishes an image at {image.offset}, inside a metadata transaction"
            self._findings.broken("image-outside-transactions", what)
