"""Who a client is over gRPC: the simulation has no TLS, so its network tells it, as a certificate or a login would.

A connection of the lane logs in by production's own SASL (machine/machine.py).
"""

from __future__ import annotations

from quorumlog.rpc.caller import Metadata
from quorumlog.security.principal import ANONYMOUS, USER, Principal

_USER = "sim-user-bin"


def known_as(user: str) -> Metadata:
    """What the beginning of a session carries. user: "": nobody that is known."""
    return ((_USER, user.encode()),) if user else ()


def principal_of(metadata: Metadata) -> Principal:
    for key, value in metadata:
        if key == _USER:
            return Principal(USER, value if isinstance(value, str) else value.decode())
    return ANONYMOUS
