"""What is raised when bytes are not what the record format says, with the evidence.

Raised by parsers, converted once at the seam: a broker answers CORRUPT_MESSAGE, recovery cuts the log there, a
client reports the partition and the offset.
"""

from __future__ import annotations


class CorruptRecords(Exception):
    """Bytes that are no records.

    position: bytes from the start of the parsed buffer to the batch (for a control record: to the field) at fault.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"records at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class TruncatedRecords(CorruptRecords):
    """The buffer ends inside a batch: a torn tail, or a fetch answer that was cut. What precedes it is good.

    A damaged length looks the same; the checksum of a batch that was whole tells the two apart, nothing else can.
    """
