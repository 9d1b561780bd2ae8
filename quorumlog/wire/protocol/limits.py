"""How much one connection and one node may hold, and how long a silent peer is kept: all limits of the lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from quorumlog.rpc.transport import CONNECT_TIMEOUT_MS_DEFAULT, MAX_MESSAGE_BYTES_DEFAULT, Listener
from quorumlog.settings.connections import OF_LISTENER
from quorumlog.settings.key import number, setting, size

GRANTED_PART = 4  # one fetch is granted at most one in so many of the free bytes
PIECE_BYTES = 64 * 1024  # what a socket does not take at once is copied in pieces of so many bytes
UNFINISHED_PART = 2  # frames that their peers have not sent whole hold at most one in so many of all bytes, together


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLimits:
    """Sizes in bytes.

    max_connections: of one listener, where no `ConnectionLimits` are given.
    max_handled_requests, max_handled_bytes: of one connection, handled at a time; one larger request is still begun.
    max_node_bytes: of all connections to client listeners: frames being received, requests
    being handled, and answers not yet taken by the peer.
    max_internal_bytes: the same for connections to internal listeners. Produce
    requests hold the clients' bytes until followers have fetched their records, so a follower's fetch must not wait for
    those bytes.
    max_unproven_frame_bytes: of a frame to an internal listener from a peer that has not proven itself.
    max_unproven_ms: a connection to an internal listener is closed when its peer has not proven itself by then.
    min_grant_bytes: what a fetch is granted in any case, so that it makes progress; its first batch may be larger.
    max_unsent_bytes: of one connection's answers; above that none of its requests begins.
    max_sent_bytes_per_turn: what all connections together write in one turn of the loop; small answers are not counted.
    max_stalled_ms: a peer is cut off that takes no answers, or sends nothing of a frame that it has begun, for so long.
    max_stalled_while_others_wait_ms: the same for a frame while other peers wait to send theirs.
    max_unsent_calls: of a calling connection.
    """

    max_frame_bytes: int = setting(
        size("socket.request.max.bytes", MAX_MESSAGE_BYTES_DEFAULT, 1, "Largest request that is read.")
    )
    max_node_bytes: int = setting(
        size("queued.max.request.bytes", 512 << 20, 1 << 20, "Most bytes held for clients; then reading pauses.")
    )
    max_internal_bytes: int = setting(
        size(
            "queued.max.internal.request.bytes",
            128 << 20,
            1 << 20,
            "Most bytes held for followers, beside those of clients. Not in Kafka.",
        )
    )
    max_connections: int = setting(OF_LISTENER)
    max_idle_ms: int = setting(
        number("connections.max.idle.ms", 600_000, 100, "A connection that is unused for this long is closed.")
    )
    max_handled_requests: int = 256
    max_handled_bytes: int = 64 * 1024 * 1024
    max_unproven_frame_bytes: int = 8 * 1024
    max_unproven_ms: int = 10_000
    min_grant_bytes: int = 256 * 1024
    max_unsent_bytes: int = 1024 * 1024
    max_sent_bytes_per_turn: int = 2 * 1024 * 1024
    max_stalled_ms: int = 30_000
    max_stalled_while_others_wait_ms: int = 2_000
    max_unsent_calls: int = 10_000
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS_DEFAULT

    def first_max_frame_bytes(self, *, internal: bool) -> int:
        """Strangers must not take the room that is kept for the cluster's nodes."""
        return min(self.max_unproven_frame_bytes, self.max_frame_bytes) if internal else self.max_frame_bytes


UNLIMITED = 2**31 - 1


@dataclass(slots=True)
class ConnectionLimits:
    """How many connections may be open. Asked for each new one, since both can be changed while a node runs.

    of_listener: of one listener. of_address: from one address to all listeners for clients
    together; nodes of a cluster may share one, so those to internal listeners do not count.
    """

    of_listener: Callable[[Listener], int]
    of_address: Callable[[str], int] = lambda _host: UNLIMITED
    open: Counter[str] = field(default_factory=Counter)  # to listeners for clients, by address


class NodeBytes:
    """The bytes that all connections to client listeners, or all to internal ones, hold together.

    A frame, once there is any room, is charged whole, even if it exceeds the room. So a frame that was charged never
    waits for others. A connection that finds no room waits, and is called back in turn.

    Frames that are not whole hold a part of the bytes at most, so that peers which begin large frames and stop cannot
    take the rest: small requests, which arrive in one read, go on.

    A thousand fetches may wait for long and then all answer at once, each with as much as it was granted. So each is
    granted a part of the bytes that are neither used nor granted to others, and no more than it asks for.
    """

    def __init__(self, limit_bytes: int, min_grant_bytes: int) -> None:
        self._limit_bytes, self._min_grant_bytes = limit_bytes, min_grant_bytes
        self.used_bytes = 0
        self.granted_bytes = 0  # to fetches that have not answered
        self.unfinished_bytes = 0  # of those that are used
        self._waiting: dict[Callable[[], None], None] = {}
        self._waiting_to_receive: dict[Callable[[], None], None] = {}
        self._is_resuming = False
        self._on_others_wait: list[Callable[[], None]] = []

    @property
    def may_receive(self) -> bool:
        """Another frame may be charged before it is whole."""
        return self.has_room and self.unfinished_bytes < self._limit_bytes // UNFINISHED_PART

    @property
    def others_wait(self) -> bool:
        """Peers wait to send their frames."""
        return bool(self._waiting_to_receive)

    def on_others_wait(self, callback: Callable[[], None]) -> None:
        """Call back each time when `others_wait` becomes true."""
        self._on_others_wait.append(callback)

    def receive(self, count: int) -> None:
        """Charge a frame that is not whole."""
        self.used_bytes += count
        self.unfinished_bytes += count

    def received(self, count: int) -> None:
        """The frame is whole, or was dropped; it stays charged until `give_back`."""
        self.unfinished_bytes -= count
        assert self.unfinished_bytes >= 0
        self._resume_all()

    @property
    def has_room(self) -> bool:
        return self.used_bytes < self._limit_bytes

    def take(self, count: int) -> None:
        self.used_bytes += count

    def give_back(self, count: int) -> None:
        self.used_bytes -= count
        assert self.used_bytes >= 0
        self._resume_all()

    def _resume_all(self) -> None:
        if not self._is_resuming:  # else a resumed connection gives back at once; the next must not run on its stack
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
        while self._waiting_to_receive and self.may_receive:
            resume = next(iter(self._waiting_to_receive))
            del self._waiting_to_receive[resume]
            resume()

    def grant(self, asked_bytes: int) -> int:
        """How many bytes one fetch may answer with; the caller gives them back by `ungrant`."""
        free_bytes = self._limit_bytes - self.used_bytes - self.granted_bytes
        granted = min(asked_bytes, max(self._min_grant_bytes, free_bytes // GRANTED_PART))
        self.granted_bytes += max(0, granted)
        return granted

    def ungrant(self, granted: int) -> None:
        self.granted_bytes -= max(0, granted)
        assert self.granted_bytes >= 0

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, when there is room."""
        self._waiting[resume] = None

    def wait_to_receive(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, when another frame may be received."""
        is_first = not self._waiting_to_receive
        self._waiting_to_receive[resume] = None
        if is_first:
            for callback in self._on_others_wait:
                callback()

    def forget(self, resume: Callable[[], None]) -> None:
        self._waiting.pop(resume, None)
        self._waiting_to_receive.pop(resume, None)
