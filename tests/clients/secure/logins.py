"""What a client is given to reach a listener, whatever its library calls it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """ca: "" for no TLS. pair: PEM file of key and certificate, or "". mechanism: of SASL, or "". token: a file, read
    whenever a token is wanted. wait_ms: after which the client is to give up.
    """

    servers: str
    ca: str = ""
    pair: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    client_id: str = "matrix"
    wait_ms: int = 8_000

    @property
    def protocol(self) -> str:
        return ("SASL_" if self.mechanism else "") + ("SSL" if self.ca else "PLAINTEXT")

    @property
    def escaped_user(self) -> str:
        """As SCRAM sends it, for clients that leave that to whoever uses them."""
        return self.user.replace("=", "=3D").replace(",", "=2C") if self.mechanism.startswith("SCRAM") else self.user

    def read_token(self) -> str:
        return Path(self.token).read_text()


class Failed(Exception):
    """What the application was told."""


class Session(Protocol):
    """A client that is open. Each call raises Failed."""

    def send(self, topic: str, size: int) -> None:
        """Write one record of `size` bytes, and wait until it is acknowledged."""

    def read(self, topic: str) -> int:
        """The size of the first record of partition 0."""

    def close(self) -> None: ...


class Driver(Protocol):
    """One client of the matrix."""

    def version(self) -> str: ...

    def open(self, login: Login) -> Session:
        """May raise Failed, or leave that to the first call."""

    def close(self) -> None: ...
