"""How channels of gRPC are protected: always by TLS, whatever else.

What gRPC cannot do is refused here, so that no channel is opened with less than was asked for.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from quorumlog.rpc.caller_security import CallerSecurity
from quorumlog.rpc.grpc.handshake import ALPN
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.settings import ENDPOINT, ClientTls

if TYPE_CHECKING:
    from quorumlog.security.tls.material import Material

DENIED_MS = 10_000

MakeAuthorization = Callable[[], Awaitable[str]]


def _any_certificate(_der: bytes) -> None:
    """Whatever TLS has verified will do."""


def _nothing_else() -> bool:
    """What was shown is all that there is."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSecurity:
    """Of every channel of one transport. There is none without TLS, so no credential is ever sent in clear.

    tls: settings under Kafka's names. material: the newest generation of what they name: the same object until it is
    another one; it is asked at each connection.
    authorization: the value of the metadata `authorization` of the next call or stream, such as `Bearer TOKEN`
    (`basic`); None: none is sent. It raises NotAuthenticated where there is none, or CredentialsUnavailable where there
    is none now. It is asked once the peer has answered, so nothing secret reaches a peer that refuses this client.
    renew: the peer has refused what was shown. True: the next call may show something else.
    cure: which options to look at where the peer refuses the credentials.
    denied_ms: for so long a refusal answers further calls.
    check: of a server's certificate, DER, beside its host and its authority; raises NotAuthenticated.
    plain_too: between nodes only: a peer that speaks no TLS is called in clear; there is no `authorization` then.
    """

    tls: ClientTls
    material: Callable[[], Material]
    authorization: MakeAuthorization | None = None
    renew: Callable[[], bool] = _nothing_else
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
        from quorumlog.security.tls.contexts import client_context  # a node in clear loads none of it

        made = client_context(self.tls, self.material())
        made.set_alpn_protocols([ALPN])
        return made

    def credentials(self, material: Material) -> grpc.ChannelCredentials:
        """gRPC has authorities of its own; it is told the system's where no others are."""
        return grpc.ssl_channel_credentials(
            root_certificates=material.authorities or _of_system(),
            private_key=material.key or None,
            certificate_chain=material.chain or None,
        )


def of_client(security: CallerSecurity) -> ChannelSecurity:
    """The same protection as on the lane. There has to be one (`why_no_grpc` is empty)."""
    tls, login = security.tls, security.login
    assert tls is not None and not security.why_no_grpc, f"gRPC cannot be protected: {security.why_no_grpc}"

    def renew() -> bool:
        has_other_keys = tls.look()
        return (login is not None and login.renew()) or has_other_keys

    return ChannelSecurity(
        tls=tls.settings,
        material=lambda: tls.newest().material,
        authorization=None if login is None else login.authorization,
        renew=renew,
        cure="check the client's certificate (ssl_keystore_location)" if login is None else login.cure,
    )


def _of_system() -> bytes | None:
    """PEM. None: this machine has them in no file, and those of gRPC are the best that there are."""
    path: str | None = ssl.get_default_verify_paths().cafile
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()
