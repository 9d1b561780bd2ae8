"""The buffer types in which record bytes arrive from a socket, a file or a builder."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview  # memoryviews are contiguous and of single bytes
