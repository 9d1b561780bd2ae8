"""What one connection and one node may hold, and how long a silent peer is kept. Every limit of the lane has a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.rpc.transport import CONNECT_TIMEOUT_MS_DEFAULT, MAX_MESSAGE_BYTES_DEFAULT

GRANTED_PART = 4  # the part of the free bytes that one fetch is allowed: one in so many


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLimits:
    """Sizes in bytes.

    max_frame_bytes: socket.request.max.bytes. max_connections: of one listener. max_idle_ms: connections.max.idle.ms.
    max_handled_requests, max_handled_bytes: of one connection, handled at a time; one larger request is still let in.
    max_node_bytes: of all connections of a transport: requests being handled and answers not yet taken by the peer.
    min_grant_bytes: what a fetch is allowed however many others wait, so that it goes on; the first batch always is.
    max_unsent_bytes: of one connection's answers; above that none of its requests is begun.
    max_stalled_ms: how long a peer may leave its answers lying, before it is cut off.
    max_unsent_calls: of a calling connection.
    """

    max_frame_bytes: int = MAX_MESSAGE_BYTES_DEFAULT
    max_connections: int = 10_000
    max_idle_ms: int = 600_000
    max_handled_requests: int = 256
    max_handled_bytes: int = 64 * 1024 * 1024
    max_node_bytes: int = 512 * 1024 * 1024
    min_grant_bytes: int = 256 * 1024
    max_unsent_bytes: int = 1024 * 1024
    max_stalled_ms: int = 30_000
    max_unsent_calls: int = 10_000
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS_DEFAULT


class NodeBytes:
    """What all connections hold together. Who finds no room waits its turn, and is called when there is some.

    A fetch may wait for long and then answer at once with all that it was allowed, as may a thousand others. So each
    is allowed a part of what nobody holds and nobody else was allowed, and no more than it asked for.
    """

    def __init__(self, limit_bytes: int, min_grant_bytes: int) -> None:
        self._limit_bytes, self._min_grant_bytes = limit_bytes, min_grant_bytes
        self.used_bytes = 0
        self.granted_bytes = 0  # to fetches at work
        self._waiting: dict[Callable[[], None], None] = {}
        self._is_resuming = False

    @property
    def has_room(self) -> bool:
        return self.used_bytes < self._limit_bytes

    def take(self, count: int) -> None:
        self.used_bytes += count

    def give_back(self, count: int) -> None:
        self.used_bytes -= count
        assert self.used_bytes >= 0
        if not self._is_resuming:  # else one that was resumed is done already: the next shall not stand on its stack
            self._is_resuming = True
            try:
                self._resume()
            finally:
                self._is_resuming = False

    def _resume(self) -> None:
        while self._waiting and self.has_room:
            resume = next(iter(self._waiting))
            del self._waiting[resume]
            resume()

    def grant(self, asked_bytes: int) -> int:
        """How much one fetch may answer; to be given back by `ungrant`."""
        free_bytes = self._limit_bytes - self.used_bytes - self.granted_bytes
        granted = min(asked_bytes, max(self._min_grant_bytes, free_bytes // GRANTED_PART))
        self.granted_bytes += max(0, granted)
        return granted

    def ungrant(self, granted: int) -> None:
        self.granted_bytes -= max(0, granted)
        assert self.granted_bytes >= 0

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once when there is room."""
        self._waiting[resume] = None

    def forget(self, resume: Callable[[], None]) -> None:
        self._waiting.pop(resume, None)
