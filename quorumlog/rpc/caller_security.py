"""How a client protects its connections, and how it logs in: the same over both wires.

None of it is chosen by the peer: a connection that is to be protected is never made without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from quorumlog.security.sasl.mechanism import ClientMechanism

if TYPE_CHECKING:
    from quorumlog.security.tls.reload import Generation
    from quorumlog.security.tls.settings import ClientTls


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

    async def authorization(self) -> str:
        """The value of the metadata `authorization` of the next call by gRPC. Raises as `begin`."""

    def renew(self) -> bool:
        """A peer does not take what `authorization` gave. True: the next one may be another."""


class CallerTls(Protocol):
    """TLS of a client: what was set, and the newest generation of what it names."""

    @property
    def settings(self) -> ClientTls: ...

    def newest(self) -> Generation:
        """For the next connection; the same object until it is another one."""

    def look(self) -> bool:
        """Look at the files now. True: another generation is in use since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSecurity:
    """protocol: its name in Kafka. tls: None: the bytes go in clear. login: None: no SASL.

    why_no_grpc: why gRPC cannot be protected as the lane is, and what to change; empty: it can.
    """

    protocol: str
    tls: CallerTls | None = None
    login: Login | None = None
    why_no_grpc: str = ""


PLAIN_TEXT = CallerSecurity(protocol="PLAINTEXT")
