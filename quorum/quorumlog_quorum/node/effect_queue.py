"""The effects of the core, performed one after another, and never past one that must be durable first."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from quorumlog_quorum.raft import RaftEffect
from quorumlog_storage.writer.worker import WorkerFull

RETRY_MS = 5  # until an effect that met a full worker queue is tried again


class EffectQueue:
    """`hold` stops the queue before the next effect until `release`. Performing an effect may call any method."""

    def __init__(self, perform: Callable[[RaftEffect], None], on_error: Callable[[Exception], None]) -> None:
        """perform: starts one effect; raises WorkerFull if it did nothing and must be tried again later.

        on_error: called with any other exception of `perform`. It may call `stop`; else the next effect follows.
        """
        self._perform, self._on_error = perform, on_error
        self._waiting: deque[RaftEffect] = deque()
        self._held = False
        self._running = False
        self._stopped = False

    def add(self, effects: Iterable[RaftEffect]) -> None:
        """Queue these effects behind those that wait."""
        self._waiting.extend(effects)
        self._run()

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self._held = False
        self._run()

    def stop(self) -> None:
        """Perform nothing more."""
        self._stopped = True

    def _run(self) -> None:
        """Not entered twice: an effect may cause events, and they more effects, which then wait for their turn."""
        if self._running:
            return
        self._running = True
        try:
            while self._waiting and not self._held and not self._stopped:
                self._perform_next()
        finally:
            self._running = False

    def _perform_next(self) -> None:
        effect = self._waiting.popleft()
        try:
            self._perform(effect)
        except WorkerFull:
            self._waiting.appendleft(effect)
            self.hold()
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self.release)
        except Exception as error:
            self._on_error(error)
