"""Finds out why a server could not listen at an address. gRPC does not say, so this binds a plain socket once more."""

from __future__ import annotations

import errno
import socket

from quorumlog.rpc.transport import AddressInUse, Listener


def why_not_bound(listener: Listener) -> Exception:
    """The exception to raise after a failed attempt to listen."""
    address = listener.address
    try:
        found = socket.getaddrinfo(address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, where in found:
            with socket.socket(family, kind, protocol) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(where)
                sock.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return AddressInUse(listener)
        return OSError(
            error.errno, f"cannot listen at {address} for {listener.name}: {error.strerror}; set another host"
        )
    return AddressInUse(listener)  # the plain bind worked, so the address was in use a moment ago
