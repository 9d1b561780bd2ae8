"""How channels of gRPC are protected: always by TLS, whatever else.

What gRPC cannot do is refused here, so that no channel is opened with less than was asked for.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import grpc

from quorumlog.security.tls.contexts import client_context
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.material import Material
from quorumlog.security.tls.settings import ENDPOINT, ClientTls

DENIED_MS = 10_000
ALPN = ["h2"]

MakeAuthorization = Callable[[], Awaitable[str]]


def _any_certificate(_der: bytes) -> None:
    """Whatever TLS has verified will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSecurity:
    """Of every channel of one transport. There is none without TLS, so no credential is ever sent in clear.

    tls: settings under Kafka's names. material: the newest generation of what they name: the same object until it is
    another one; it is asked at each connection.
    authorization: the value of the metadata `authorization` of the next call or stream, such as `Bearer TOKEN`
    (`basic`); None: none is sent. It raises NotAuthenticated where there is none, or NotDelivered where there is none
    now. It is asked once the peer has answered, so nothing secret reaches a peer that refuses this client. No client of
    ours has it yet: with a login they use the lane.
    cure: which options to look at where the peer refuses the credentials.
    denied_ms: for so long a refusal answers further calls.
    check: of a server's certificate, DER, beside its host and its authority; raises NotAuthenticated.
    plain_too: between nodes only: a peer that speaks no TLS is called in clear; there is no `authorization` then.
    """

    tls: ClientTls
    material: Callable[[], Material]
    authorization: MakeAuthorization | None = None
    cure: str = "check the user and its password, or the token"
    denied_ms: int = DENIED_MS
    check: Callable[[bytes], None] = _any_certificate
    plain_too: bool = False

    def __post_init__(self) -> None:
        assert not (self.plain_too and self.authorization), "credentials need TLS"
        if not self.tls.check_hostname:
            raise BadTls(
                f"{self.tls.prefix}{ENDPOINT} is empty, and gRPC always compares the host with its certificate: leave "
                "the key out, or connect to a listener of Kafka's protocol only"
            )

    def context(self) -> ssl.SSLContext:
        """A new one, of the newest generation. Raises BadTls."""
        made = client_context(self.tls, self.material())
        made.set_alpn_protocols(ALPN)
        return made

    def credentials(self, material: Material) -> grpc.ChannelCredentials:
        """gRPC has authorities of its own; it is told the system's where no others are."""
        return grpc.ssl_channel_credentials(
            root_certificates=material.authorities or _of_system(),
            private_key=material.key or None,
            certificate_chain=material.chain or None,
        )


def _of_system() -> bytes | None:
    """PEM. None: this machine has them in no file, and those of gRPC are the best that there are."""
    path: str | None = ssl.get_default_verify_paths().cafile
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()
