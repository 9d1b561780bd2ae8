"""How far the recovery of one log has come. Written by the thread that opens the log, read by any other."""

from __future__ import annotations


class ScanProgress:
    """What is left to verify: segments, and their bytes. 0 before the recovery has begun, and once it has ended."""

    __slots__ = ("bytes_left", "segments_left")

    def __init__(self) -> None:
        self.segments_left = 0
        self.bytes_left = 0

    def begin(self, segments: int, size_bytes: int) -> None:
        self.segments_left, self.bytes_left = segments, size_bytes

    def segment_done(self, size_bytes: int) -> None:
        self.segments_left -= 1
        self.bytes_left -= size_bytes

    def end(self) -> None:
        """Also where the log turned out to end earlier."""
        self.begin(0, 0)
