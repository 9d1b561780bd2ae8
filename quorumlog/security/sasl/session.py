"""What one connection to a listener with SASL may say, and who it is: Kafka's exchange as states. Pure.

States:

    INITIAL       nothing was said yet
    VERSIONED     ApiVersions was answered
    AUTHENTICATE  a mechanism is agreed; its messages go to and fro, in SaslAuthenticate (handshake 1) or bare
                  (handshake 0: length and bytes, no header)
    COMPLETE      the client is known; ordinary requests are carried out
    FAILED        the last answer is on its way, and the connection ends

    event              INITIAL            VERSIONED         AUTHENTICATE      COMPLETE           FAILED
    ApiVersions        VERSIONED (1)      closed            illegal, FAILED   ordinary           closed
    handshake          AUTHENTICATE       AUTHENTICATE      illegal, FAILED   AUTHENTICATE (2)   closed
      of an unknown
      mechanism        unknown, FAILED    unknown, FAILED                     unknown, FAILED
    SaslAuthenticate   closed             closed            its step (3)      illegal            closed
    bare token                                              its step (3)
    another request    closed             closed            illegal, FAILED   ordinary (4)       closed

illegal: the answer is ILLEGAL_SASL_STATE. unknown: it is UNSUPPORTED_SASL_MECHANISM, with the known ones. Either is
sent at once, and ends the connection if the state is FAILED. closed: the connection ends without an answer.

(1) Not if the answer was an error: a client that asked for a version that is not known asks again.
(2) A re-authentication (KIP-368), if the session has an end and a second has passed since the last one began. Else
    illegal, and the session goes on.
(3) COMPLETE with the mechanism's `Done`, FAILED with its `Failed`: SASL_AUTHENTICATION_FAILED with one text for every
    reason. It is sent after `connection.failed.authentication.delay.ms`, when the connection ends. The same at a
    re-authentication that names another mechanism, or that proves another principal.
(4) Closed once the session has expired.

After FAILED the caller reads no further. During a re-authentication the old principal and the old end of the session
hold until it is done.

Sources: Kafka's SaslServerAuthenticator and KafkaChannel (`maybeBeginServerReauthentication`); KIP-43, KIP-152,
KIP-368.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Any, NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.security.principal import Principal
from quorumlog.security.sasl.mechanism import Challenge, Done, Failed, Outcome, ServerMechanism, Work

HANDSHAKE_KEY, API_VERSIONS_KEY, AUTHENTICATE_KEY = 17, 18, 36
MAX_RECEIVE_BYTES = 524_288  # sasl.server.max.receive.size: a frame before COMPLETE
FAILED_DELAY_MS = 100  # connection.failed.authentication.delay.ms
MIN_REAUTH_INTERVAL_MS = 1_000  # between the beginnings of two re-authentications (Kafka's KafkaChannel)
_BARE = 0  # version of SaslHandshake after which tokens have no header


class State(IntEnum):
    INITIAL = auto()
    VERSIONED = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    FAILED = auto()


class Pass(Enum):
    """What a request is, before it is parsed."""

    ORDINARY = auto()  # carry it out
    VERSIONS = auto()  # answer ApiVersions, then call `versions_answered`
    SASL = auto()  # decode it, then call `handshake` or `authenticate`


class Now(NamedTuple):
    """monotonic_ms: for lengths of time. unix_ms: for the ends of credentials."""

    monotonic_ms: int
    unix_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What to answer and what to do.

    code, message, auth_bytes, lifetime_ms: fields of the answer to SaslAuthenticate; code and mechanisms: to
    SaslHandshake; code alone: to another request. A bare token is answered with `auth_bytes`.
    is_silent: nothing is answered. close_after_ms: read nothing more, and after so long send the answer and close;
    None: the connection goes on. reason: for the log. work: the answer is made by `resume`, with what `work` returns;
    until then nothing more is read.
    """

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    auth_bytes: bytes = b""
    lifetime_ms: int = 0
    mechanisms: tuple[str, ...] = ()
    is_silent: bool = False
    close_after_ms: int | None = None
    reason: str = ""
    work: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRules:
    """mechanisms: by name, in the order in which they are told; each call makes a new exchange. max_reauth_ms:
    connections.max.reauth.ms; 0: only a credential's own end bounds a session."""

    mechanisms: Mapping[str, Callable[[], ServerMechanism]]
    max_reauth_ms: int = 0
    failed_delay_ms: int = FAILED_DELAY_MS


class SaslSession:
    """One connection's. principal: who it is; None until it has logged in. mechanism: of the session. renewals:
    how often it was renewed.
    asked: of the exchange that runs, or was the last; "" before there is one.

    ends_ms: monotonic; from then on the session serves nothing. None: it has no end.
    """

    __slots__ = (
        "_bare",
        "_exchange",
        "_reauth_began_ms",
        "_rules",
        "asked",
        "ends_ms",
        "mechanism",
        "principal",
        "renewals",
        "state",
    )  # fmt: skip

    def __init__(self, rules: SessionRules) -> None:
        self._rules = rules
        self._exchange: ServerMechanism | None = None
        self.asked = ""  # mechanism that the running exchange has asked for
        self._bare = False
        self._reauth_began_ms: int | None = None
        self.state = State.INITIAL
        self.principal: Principal | None = None
        self.renewals = 0
        self.mechanism = ""
        self.ends_ms: int | None = None

    # --- what comes

    @property
    def expects_token(self) -> bool:
        """The next frame is a bare token, and no request."""
        return self.state is State.AUTHENTICATE and self._bare

    @property
    def is_complete(self) -> bool:
        """Ordinary requests are taken. While it is False a frame has at most MAX_RECEIVE_BYTES."""
        return self.state is State.COMPLETE

    def expired(self, now: Now) -> bool:
        """The session has ended: it serves nothing, not even the answer of a request that it has begun."""
        return self.ends_ms is not None and now.monotonic_ms >= self.ends_ms

    def judge(self, api_key: int, now: Now) -> Pass | Reply:
        """What to do with a request, by its API key alone. Never asked of a bare token."""
        assert not self.expects_token
        is_sasl = api_key in (HANDSHAKE_KEY, AUTHENTICATE_KEY)
        if self.state is State.COMPLETE:
            if is_sasl:
                return Pass.SASL
            return _closed("the session has expired") if self.expired(now) else Pass.ORDINARY
        if self.state is State.FAILED:
            return _closed("the login has failed")
        if self.state is State.AUTHENTICATE:
            return Pass.SASL if api_key == AUTHENTICATE_KEY else self._illegal(f"request {api_key} during a login")
        if api_key == HANDSHAKE_KEY:
            return Pass.SASL
        if api_key == API_VERSIONS_KEY and self.state is State.INITIAL:
            return Pass.VERSIONS
        self.state = State.FAILED
        return _closed(f"request {api_key} before a login; is the client's security.protocol one with SASL?")

    def versions_answered(self, code: ErrorCode) -> None:
        """ApiVersions was answered, before a login."""
        assert self.state is State.INITIAL
        if code is ErrorCode.NONE:
            self.state = State.VERSIONED

    def handshake(self, mechanism: str, version: int, now: Now) -> Reply:
        """SaslHandshake, which `judge` let pass."""
        assert self.state in (State.INITIAL, State.VERSIONED, State.COMPLETE), self.state.name
        if self.state is State.COMPLETE and not self._begin_again(now):
            return Reply(code=ErrorCode.ILLEGAL_SASL_STATE, reason="a handshake after the login")
        told = tuple(self._rules.mechanisms)
        start = self._rules.mechanisms.get(mechanism)
        if start is None:
            self.state = State.FAILED
            return Reply(
                code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=told, close_after_ms=0,
                reason=f"mechanism {mechanism[:40]!r} is not enabled",
            )  # fmt: skip
        self.state = State.AUTHENTICATE
        self._exchange, self.asked, self._bare = start(), mechanism, version == _BARE
        return Reply(mechanisms=told)

    def _begin_again(self, now: Now) -> bool:
        """A re-authentication may begin now."""
        began = self._reauth_began_ms
        if self.ends_ms is None or (began is not None and now.monotonic_ms - began < MIN_REAUTH_INTERVAL_MS):
            return False
        self._reauth_began_ms = now.monotonic_ms
        return True

    def authenticate(self, message: bytes, now: Now) -> Reply:
        """The message of SaslAuthenticate, which `judge` let pass, or a bare token."""
        if self.state is State.COMPLETE:
            return Reply(
                code=ErrorCode.ILLEGAL_SASL_STATE, message="SaslAuthenticate after the login",
                reason="SaslAuthenticate after the login",
            )  # fmt: skip
        assert self.state is State.AUTHENTICATE and self._exchange is not None, self.state.name
        if self._is_again and self.asked != self.mechanism:
            return self._failed(f"re-authentication by {self.asked}, after a login by {self.mechanism}")
        step = self._exchange.step(message, now.unix_ms)
        return Reply(work=step.run) if isinstance(step, Work) else self._take(step, now)

    def resume(self, result: Any, now: Now) -> Reply:
        """The result of a reply's work."""
        assert self.state is State.AUTHENTICATE and self._exchange is not None, self.state.name
        return self._take(self._exchange.resume(result, now.unix_ms), now)

    # --- what follows

    @property
    def _is_again(self) -> bool:
        return self.principal is not None

    def _take(self, outcome: Outcome, now: Now) -> Reply:
        if isinstance(outcome, Challenge):
            return Reply(auth_bytes=outcome.message)
        return self._failed(outcome.reason) if isinstance(outcome, Failed) else self._done(outcome, now)

    def _done(self, done: Done, now: Now) -> Reply:
        if self._is_again and done.principal != self.principal:
            return self._failed(f"re-authentication as {done.principal}, after a login as {self.principal}")
        lifetime_ms = self._lifetime_ms(done.expires_ms, now)
        if lifetime_ms is not None and lifetime_ms <= 0:  # Kafka tells 0 here, which clients take for "no end"
            return self._failed("the credential has ended")
        self.state = State.COMPLETE
        self.renewals += self._is_again
        self.principal, self.mechanism, self._exchange = done.principal, self.asked, None
        self.ends_ms = None if lifetime_ms is None else now.monotonic_ms + lifetime_ms
        return Reply(auth_bytes=done.message, lifetime_ms=lifetime_ms or 0)

    def _lifetime_ms(self, expires_ms: int | None, now: Now) -> int | None:
        bounds = [self._rules.max_reauth_ms] if self._rules.max_reauth_ms > 0 else []
        if expires_ms is not None:
            bounds.append(expires_ms - now.unix_ms)
        return min(bounds, default=None)

    def _failed(self, reason: str) -> Reply:
        """One text for all reasons: a client learns nothing of users, rounds or keys."""
        self.state, self._exchange = State.FAILED, None
        return Reply(
            code=ErrorCode.SASL_AUTHENTICATION_FAILED, message=self._failed_text, is_silent=self._bare,
            close_after_ms=self._rules.failed_delay_ms, reason=reason,
        )  # fmt: skip

    @property
    def _failed_text(self) -> str:
        """Kafka's words for SCRAM, which clients' logs are searched for."""
        what = "re-authentication" if self._is_again else "authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self.asked}"

    def _illegal(self, reason: str) -> Reply:
        self.state, self._exchange = State.FAILED, None
        return Reply(code=ErrorCode.ILLEGAL_SASL_STATE, message=reason, close_after_ms=0, reason=reason)


def _closed(reason: str) -> Reply:
    return Reply(is_silent=True, close_after_ms=0, reason=reason)
