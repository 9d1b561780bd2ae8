"""What became of the logins of one connection. Pure.

A peer that refuses is not asked again at once: a refusal is no fault of the network (DENIED_MS). Under TLS 1.3 a server
judges the client's certificate after the client's handshake has ended, and many servers refuse by a bare end of the
stream. One such end may be a broker that stops; MAX_EARLY_ENDS in a row are a refusal. A listener that asks for a
login answers ApiVersions, and then closes at the first request of a client that does not log in.
"""

from __future__ import annotations

from quorumlog.rpc.transport import NotAuthenticated

DENIED_MS = 10_000  # for so long a refusal answers further calls
MAX_EARLY_ENDS = 3


class LoginRecord:
    def __init__(self) -> None:
        self._early_ends = self._unanswered_ends = 0
        self._denied: NotAuthenticated | None = None
        self._until_s = 0.0

    def succeeded(self) -> None:
        self._early_ends = 0
        self._denied = None

    def answered(self) -> None:
        """A call, by the peer."""
        self._unanswered_ends = 0

    def deny(self, refusal: NotAuthenticated, now_s: float) -> None:
        self._denied, self._until_s = refusal, now_s + DENIED_MS / 1000

    def ended_early(self) -> bool:
        """The peer closed a connection before the login was over. True: that is a refusal by now."""
        self._early_ends += 1
        return self._early_ends >= MAX_EARLY_ENDS

    def ended_unanswered(self) -> bool:
        """The peer closed a connection at its first request. True: it wants a login by now."""
        self._unanswered_ends += 1
        return self._unanswered_ends >= MAX_EARLY_ENDS

    def denied(self, now_s: float) -> NotAuthenticated | None:
        """The refusal that is still in force."""
        return self._denied if now_s < self._until_s else None
