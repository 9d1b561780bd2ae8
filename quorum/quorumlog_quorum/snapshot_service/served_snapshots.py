"""Snapshots as a node serves them: a file is verified as a whole before its first byte leaves.

Bytes rot on a disk, and a follower that has fetched a damaged file can only ask for it again. So the first request in a
process waits for a pass over the file, in pieces, away from the loop. The verdict stands for the download; one that
begins when the verdict is older than VERDICT_MS has the file verified again. A file that fails is set aside, as a start
does it, and the request is answered as if there were no such snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorumlog.clock import Clock
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import SnapshotId, snapshot_path
from quorumlog_storage.writer.writer import Outcome

_log = logging.getLogger("quorumlog.quorum")

VERDICT_MS = 60_000

OnRead = Callable[[int, bytes], None]  # given the size of the file and the bytes; size -1: it cannot be served


class ServedSnapshots:
    def __init__(self, store: SnapshotStore, clock: Clock, on_lost: Callable[[SnapshotId], None]) -> None:
        """on_lost: called with a snapshot that cannot be used any more. The store does not know it by then."""
        self._store, self._clock, self._on_lost = store, clock, on_lost
        self._verified_ms: dict[SnapshotId, int] = {}  # when the pass over the file ended
        self._waiting: dict[SnapshotId, list[Callable[[], None]]] = {}  # for the pass that is under way

    def read(self, snapshot: SnapshotId, position: int, max_bytes: int, on_read: OnRead) -> None:
        """Bytes of the file from `position`, at most so many. position 0 begins a download."""
        if not self._store.holds(snapshot):
            on_read(-1, b"")
        elif self._is_verified(snapshot, begins=position == 0):
            self._read(snapshot, position, max_bytes, on_read)
        else:
            self._verify(snapshot, lambda: self._read(snapshot, position, max_bytes, on_read))

    def _is_verified(self, snapshot: SnapshotId, *, begins: bool) -> bool:
        verified_ms = self._verified_ms.get(snapshot)
        if verified_ms is None:
            return False
        return not begins or self._clock.now_ms() - verified_ms <= VERDICT_MS

    def _verify(self, snapshot: SnapshotId, then: Callable[[], None]) -> None:
        """One pass at a time over each file; `then` is called when it has ended, however it ended."""
        is_under_way = snapshot in self._waiting
        self._waiting.setdefault(snapshot, []).append(then)
        if not is_under_way:
            self._store.verify(snapshot, lambda outcome: self._on_verified(snapshot, outcome))

    def _on_verified(self, snapshot: SnapshotId, outcome: Outcome) -> None:
        waiting = self._waiting.pop(snapshot)
        self._verified_ms = {
            one: ms for one, ms in self._verified_ms.items() if one != snapshot and self._store.holds(one)
        }
        if outcome.error is None:
            self._verified_ms[snapshot] = self._clock.now_ms()
        elif self._store.holds(snapshot) and self._store.give_up(snapshot, outcome.error):
            self._on_lost(snapshot)
        for then in waiting:
            then()

    def _read(self, snapshot: SnapshotId, position: int, max_bytes: int, on_read: OnRead) -> None:
        """Only what was verified, even if it is long ago."""
        if snapshot not in self._verified_ms or not self._store.holds(snapshot):
            on_read(-1, b"")
            return

        def read() -> tuple[int, bytes]:
            file = self._store.disk.open(snapshot_path(self._store.directory, snapshot))
            try:
                return file.size(), file.pread(position, max_bytes)
            finally:
                file.close()

        def done(outcome: Outcome) -> None:
            if outcome.error is None:
                on_read(*outcome.value)
                return
            _log.warning("snapshot %s cannot be served: %s", snapshot, outcome.error)
            self._verified_ms.pop(snapshot, None)
            on_read(-1, b"")

        self._store.read_later(read, done)
