"""Connections of browsers that cost the process no more than they are worth: a bounded number, each with a time limit.

uvicorn waits for a request for as long as its peer likes, and lets any number of them wait; in a node they would take
the descriptors of its files. So a request has to be there whole within READ_S of its connection, or of the answer
before it, and what a peer does not take of an answer within WRITE_S is not sent. Where there are as many connections
as may be, the one that has waited longest without a request goes for the new one.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

READ_S = 20.0
WRITE_S = 20.0


class BoundedConnection(H11Protocol):
    """`limit_concurrency` of uvicorn's configuration is one more than there may be of them."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._unsent = 0

    @property
    def answers(self) -> bool:
        """A request is there, and its answer has not ended."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._wait_for_request()
        most = self.limit_concurrency
        if most is not None and len(self.connections) >= most:
            waiting = [one for one in self.connections if isinstance(one, BoundedConnection) and not one.answers]
            min(waiting, key=lambda one: one.waits_until).drop()  # this one waits, too

    @property
    def waits_until(self) -> float:
        return self._reading.when() if self._reading is not None else float("inf")

    def drop(self) -> None:
        self._stop_timers()
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.answers and not self.cycle.more_body and self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def on_response_complete(self) -> None:
        self._wait_for_request()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _wait_for_request(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = self.loop.call_later(READ_S, self._read_too_long)

    def _read_too_long(self) -> None:
        if self._writing is None:
            self.drop()
        else:
            self._wait_for_request()  # the answer before is still being taken

    def _watch_writing(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(WRITE_S, self._written_too_long)

    def _written_too_long(self) -> None:
        if self.transport.get_write_buffer_size() >= self._unsent:
            self.drop()
        else:
            self._watch_writing()

    def _stop_timers(self) -> None:
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        self._reading = self._writing = None
