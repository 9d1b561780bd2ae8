"""What a client shows to whoever reads the network, where it has no TLS and the node is on another machine."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.security.options import SecurityOptions
from quorumlog.messages.credentials import AlterUserScramCredentialsRequest
from quorumlog.rpc.transport import Address
from quorumlog.security.host import is_near
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN

_log = logging.getLogger(__name__)
_SHOWN = {PLAIN: "the password", OAUTHBEARER: "the token"}


def warn_of_login(options: SecurityOptions, addresses: Iterable[Address]) -> None:
    """Once for a client."""
    shown = _SHOWN.get(options.sasl_mechanism)
    if shown is None or options.protocol.tls:
        return
    far = [address for address in addresses if not is_near(address.host)]
    if far:
        _log.warning(
            "sasl_mechanism=%s shows %s to whoever reads the network on the way to %s: set security_protocol=SASL_SSL, "
            "or sasl_mechanism=SCRAM-SHA-512",
            options.sasl_mechanism,
            shown,
            far[0],
        )


def check_request(options: SecurityOptions, address: Address, request: Any) -> None:
    """Raises ConfigError for a salted password, which is as good as the password (RFC 5802, section 9), in clear."""
    is_secret = isinstance(request, AlterUserScramCredentialsRequest) and bool(request.upsertions)
    if is_secret and not options.protocol.tls and not is_near(address.host):
        raise ConfigError(
            f"a user's password would go to {address} in clear, and nothing was sent: set security_protocol=SASL_SSL "
            "or SSL, or run this on the machine of a node"
        )
