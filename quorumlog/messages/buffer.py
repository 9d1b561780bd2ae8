"""Bytes that need not be copied to become a field of a message.

A field whose schema comment says `buffer` holds one of these; decoding always yields `bytes`. Whoever keeps a
`memoryview` keeps all of the frame beneath it alive (DESIGN §4).
"""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
