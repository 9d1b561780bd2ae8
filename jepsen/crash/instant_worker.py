"""`quorumlog_storage.writer.worker.Worker` without a loop and without a thread: each job is a turn, done when `submit`
returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quorumlog_storage.writer.stall_watch import OpenCall
from quorumlog_storage.writer.worker import Answer, run_read
from quorumlog_storage.writer.writer import DirectoryWriter, Job


class InstantWorker:
    def __init__(self, writer: DirectoryWriter) -> None:
        self.path, self._writer = writer.path, writer

    def submit(self, job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        (written,) = self._writer.write_phase([job])
        if on_written is not None:
            on_written(written)
        (synced,) = self._writer.sync_phase()
        if on_synced is not None:
            on_synced(synced)

    def read(self, fn: Callable[[], Any], callback: Answer) -> None:
        callback(run_read(fn))

    def beside(self, fn: Callable[[], Any], callback: Answer) -> None:
        callback(self._writer.attempt(fn))

    @property
    def is_busy(self) -> bool:
        return False

    def on_busy(self, callback: Callable[[], None]) -> None:
        """It is never busy between two calls."""

    def open_calls(self) -> Sequence[OpenCall]:
        """A call that hangs ends the process here."""
        return ()

    def close(self) -> None:
        """Nothing waits."""
