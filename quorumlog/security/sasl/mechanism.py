"""What a SASL mechanism answers, and how the two sides of one look. Pure.

A server's mechanism serves one exchange. `step` takes the client's next message. It never says to the client why a
login failed: the reason is for the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from quorumlog.security.principal import Principal
from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.secret import Secret

PLAIN = "PLAIN"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
MAX_LOGGED_NAME = 100  # characters
MECHANISMS = (SCRAM_SHA_512, SCRAM_SHA_256, PLAIN, OAUTHBEARER)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange goes on: the client answers this message."""

    message: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """The client has proven itself. message: the last one to it. expires_ms: when its credential ends, in Unix time;
    None: it does not."""

    message: bytes
    principal: Principal
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The login failed. reason: for the log only, without anything secret."""

    reason: str


@dataclass(frozen=True, slots=True)
class Work:
    """The mechanism needs the result of `run`, which may block or compute for long: the shell calls it in a thread, and
    gives what it returns to `resume`. `run` raises nothing that is to be expected."""

    run: Callable[[], Any]


Outcome = Challenge | Done | Failed
Step = Outcome | Work


class ServerMechanism(Protocol):
    """now_ms: Unix time."""

    def step(self, message: bytes, now_ms: int) -> Step:
        """Takes the client's next message."""

    def resume(self, result: Any, now_ms: int) -> Outcome:
        """Takes the result of the work that `step` asked for."""


class Credentials(Protocol):
    """What the cluster knows of users."""

    def scram(self, mechanism: str, name: str) -> ScramCredential | None:
        """mechanism: one of SCRAM's names. None: there is no such credential."""


class LoginError(Exception):
    """A client's login cannot go on: the answer is not one of the mechanism, or the server has not proven itself."""


def shown_user(name: str) -> str:
    """For the log: a stranger has chosen the name."""
    return f"user {name[:MAX_LOGGED_NAME]!r}"


def check_utf8(name: str, password: Secret) -> None:
    """Raises LoginError for half a surrogate, which no server could read."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise LoginError("the user's name is not text that UTF-8 can say") from None
    try:
        password.reveal().encode("utf-8")
    except UnicodeEncodeError:
        raise LoginError("the password is not text that UTF-8 can say") from None


class ClientMechanism(Protocol):
    """The client's side of one exchange. Both methods raise LoginError."""

    name: str

    def first(self) -> bytes:
        """The first message. The client always begins."""

    def step(self, message: bytes) -> bytes | None:
        """Takes the server's next message. None: the exchange has ended well, and nothing is to be sent."""
