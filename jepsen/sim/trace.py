"""The history of a simulation as one hash. The same seed must give the same hash in every process.

A line is `<virtual ns> <node> <kind> <digest>`, with the digest of the payload (DESIGN 12). Lines can also be written
to a file, to find where two runs diverge.
"""

from __future__ import annotations

import hashlib
from typing import TextIO

from quorumlog.messages.buffer import Buffer

_DIGEST_BYTES = 8


class Trace:
    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.lines = 0

    def record(self, now_ns: int, node: str, kind: str, payload: Buffer = b"") -> None:
        digest = hashlib.sha256(payload).digest()[:_DIGEST_BYTES].hex() if payload else "-"
        line = f"{now_ns} {node} {kind} {digest}\n"
        self._hash.update(line.encode("utf-8"))
        self.lines += 1
        if self._file is not None:
            self._file.write(line)

    def hexdigest(self) -> str:
        """SHA-256 of all lines so far."""
        return self._hash.hexdigest()
