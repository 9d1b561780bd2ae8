"""The history of a simulation as one hash. The same seed must give the same hash in every process.

A line is `<virtual ns> <node> <kind> <digest>`, with the digest of the payload. Lines can also be written
to a file, to find where two runs diverge.
"""

from __future__ import annotations

import hashlib
from typing import TextIO

from quorumlog.messages.buffer import Buffer

_DIGEST_DIGITS = 16
_BUFFERED = 1_000  # lines that wait for the hash


class Trace:
    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._buffer: list[str] = []  # lines that the hash does not have yet
        self.lines = 0

    def record(self, now_ns: int, node: str, kind: str, payload: Buffer = b"") -> None:
        digest = hashlib.sha256(payload).hexdigest()[:_DIGEST_DIGITS] if payload else "-"
        line = f"{now_ns} {node} {kind} {digest}\n"
        self._buffer.append(line)
        self.lines += 1
        if len(self._buffer) >= _BUFFERED:
            self._take_buffer()
        if self._file is not None:
            self._file.write(line)

    def hexdigest(self) -> str:
        """SHA-256 of all lines so far."""
        self._take_buffer()
        return self._hash.hexdigest()

    def _take_buffer(self) -> None:
        self._hash.update("".join(self._buffer).encode("utf-8"))
        self._buffer.clear()
