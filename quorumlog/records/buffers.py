"""The kinds of memory that record bytes arrive in: whatever a socket, a file or a builder hands over."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview  # memoryviews are contiguous and of single bytes
