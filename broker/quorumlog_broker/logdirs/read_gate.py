"""A turnstile in front of a directory's reader threads: a few readers at a time, the others in the order of arrival.

A directory has two. One keeps the queue of its threads from overflowing: what does not fit waits here, with a deadline.
The other lets one search at a time through, so that searches never hold more than one of the threads, and fetches go on
beside them. A search is cut into slices and joins the line again for each; so searches share that thread by turns.
"""

from __future__ import annotations

import asyncio
from collections import deque

from quorumlog_broker.logdirs.failures import Busy


class ReadGate:
    """`enter` before each read, `leave` once the thread has ended it. Used on the loop only.

    what: for messages. at_once: readers inside. max_waiting: in the line. max_wait_ms: of each.
    """

    def __init__(self, what: str, *, at_once: int, max_waiting: int, max_wait_ms: int) -> None:
        self._what = what
        self._at_once, self._max_waiting, self._max_wait_ms = at_once, max_waiting, max_wait_ms
        self.inside = 0
        self._line: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._line)

    async def enter(self) -> None:
        """Raises Busy."""
        if self.inside < self._at_once:  # then nobody waits: whoever leaves hands the place on
            self.inside += 1
            return
        if len(self._line) >= self._max_waiting:
            raise Busy(f"{len(self._line)} {self._what} wait already, the limit; try again later")
        await self._wait()

    def leave(self) -> None:
        """The place goes to the first that still waits."""
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.inside -= 1

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        self._line.append(place)
        timer = loop.call_later(self._max_wait_ms / 1000, self._too_late, place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # the place came in the same moment
            raise
        finally:
            timer.cancel()

    def _too_late(self, place: asyncio.Future[None]) -> None:
        if not place.done():
            place.set_exception(Busy(f"{self._what} waited for {self._max_wait_ms} ms; try again later"))
