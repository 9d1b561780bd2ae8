"""Errors for bytes that break the record format, with the evidence.

Parsers raise them. They are converted once, at the edge: a broker answers CORRUPT_MESSAGE, recovery truncates the log
there, and a client reports the partition and the offset.
"""

from __future__ import annotations


class CorruptRecords(Exception):
    """Bytes that are not valid records.

    position: bytes from the start of the parsed buffer to the faulty batch (for a control record: to the faulty field).
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"records at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class TruncatedRecords(CorruptRecords):
    """The buffer ends inside a batch: a torn tail, or a fetch response that was cut. The batches before it are good.

    A damaged length field looks the same. Only the checksum of a batch that was whole tells the two apart.
    """
