"""What a listener of gRPC cannot do, said without loading gRPC: commands read configurations, too."""

from __future__ import annotations

from quorumlog.rpc.transport import Listener
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.settings import CLIENT_AUTH, ClientAuth, ServerTls


def check_grpc_listener(listener: Listener, tls: ServerTls | None) -> None:
    """Raises BadTls. tls: of the listener; None: it has none."""
    if listener.security is SecurityProtocol.SASL_PLAINTEXT:
        raise BadTls(
            f"listener.security.protocol.map: {listener.name}:SASL_PLAINTEXT: by gRPC a client shows its password or "
            f"token itself, which needs TLS: write {listener.name}:SASL_SSL"
        )
    if tls is not None and tls.client_auth is ClientAuth.REQUESTED:
        raise BadTls(
            f"{tls.prefix}{CLIENT_AUTH}=requested: gRPC of {listener.name} asks for certificates from all clients or "
            "from none: write required or none"
        )
