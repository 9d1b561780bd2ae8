"""The syncs of one turn: a few run one after the other on the writer's own thread, many are shared among threads.

All files are begun before the first sync waits (`File.begin_sync`), so most of the writing is done when a sync comes.
Each sync still waits for a flush of the drive, and syncs that wait together share one flush. One helper per file costs
more processor time; longer shares cost more waiting where the processors are busy. Figures: bench/README.md, "What was
tried".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

from quorumlog_storage.writer.writer import ended

SYNC_THREADS = 8  # the caller's included; each is started when it is first needed
SYNCS_PER_THREAD = 2  # of one thread, before another one helps

Ended = list[Exception | None]


class SyncPool:
    """`quorumlog_storage.writer.writer.RunSyncs` on threads, for one log directory. threads: the helpers that were
    started.
    """

    def __init__(self, path: str) -> None:
        self.threads: list[int] = []
        self._helpers = ThreadPoolExecutor(
            SYNC_THREADS - 1,
            thread_name_prefix=f"sync {path}",
            initializer=lambda: self.threads.append(get_ident()),
        )

    def run(self, syncs: Sequence[Callable[[], None]]) -> Ended:
        """The error of each sync, in order. The caller's thread performs the first share."""
        shares = min(SYNC_THREADS, -(-len(syncs) // SYNCS_PER_THREAD))
        if shares <= 1:
            return _one_by_one(syncs)
        others = [self._helpers.submit(_one_by_one, syncs[share::shares]) for share in range(1, shares)]
        ends: Ended = [None] * len(syncs)
        ends[::shares] = _one_by_one(syncs[::shares])
        for share, other in enumerate(others, start=1):
            ends[share::shares] = other.result()
        return ends

    def close(self, *, wait: bool = True) -> None:
        """wait: until the helpers have ended, which a disk that hangs would prevent."""
        self._helpers.shutdown(wait=wait)


def _one_by_one(syncs: Sequence[Callable[[], None]]) -> Ended:
    return [ended(sync) for sync in syncs]
