"""How a client protects its connections, and how it logs in: the same over both wires.

None of it is chosen by the peer: a connection that is to be protected is never made without.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Protocol

from quorumlog.security.sasl.mechanism import ClientMechanism


class CredentialsUnavailable(Exception):
    """There are no credentials now, for example because a token's endpoint is down. Later there may be."""


class Login(Protocol):
    """mechanism: its name in SASL. who: for messages; never a secret. cure: what to look at if the peer refuses it."""

    @property
    def mechanism(self) -> str: ...

    @property
    def who(self) -> str: ...

    @property
    def cure(self) -> str: ...

    async def begin(self) -> ClientMechanism:
        """For the next exchange. Raises CredentialsUnavailable; NotAuthenticated if there will never be any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSecurity:
    """protocol: its name in Kafka. tls: of this client; None: the bytes go in clear. login: None: no SASL."""

    protocol: str
    tls: ssl.SSLContext | None = None
    login: Login | None = None


PLAIN_TEXT = CallerSecurity(protocol="PLAINTEXT")
