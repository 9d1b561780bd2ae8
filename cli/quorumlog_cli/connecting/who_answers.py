"""Whether what listens at an address can be a broker: asked once, before a client tries again and again for long.

A broker answers ApiVersions at once, and a gRPC listener begins with SETTINGS. All else is told by what it says. What
says nothing may be a broker that hangs, so it gets some time.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread

from quorumlog.rpc.transport import Address
from quorumlog.wire.calling.socket_calls import SILENT
from quorumlog.wire.format.framing import looks_like
from quorumlog.wire.protocol import versions

ANSWER_TIMEOUT_S = 3.0
_CORRELATION_ID = 0x71756F72
_START = 9  # bytes that tell: of a frame its length and correlation id, of HTTP/2 the head of its first frame
_ALERT = b"\x15\x03"  # the head of a record of TLS (RFC 8446, 5.1)
_SETTINGS = 4  # the type of HTTP/2's first frame (RFC 9113, 3.4)


def why_none_answers(addresses: Sequence[Address], connect_timeout_s: float) -> list[str]:
    """For each address why no broker can be asked there; empty as soon as one seems to answer. All are asked at the
    same time, so that one which hangs costs nothing beside one that serves."""
    answers: SimpleQueue[tuple[Address, str]] = SimpleQueue()

    def ask(address: Address) -> None:
        answers.put((address, why_no_broker(address, connect_timeout_s)))

    for address in addresses:
        Thread(target=ask, args=(address,), daemon=True).start()
    reasons: dict[Address, str] = {}
    for _ in addresses:
        address, why = answers.get()
        if not why:
            return []
        reasons[address] = why
    return [f"{address}: {reasons[address]}" for address in addresses]


def why_no_broker(address: Address, connect_timeout_s: float, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> str:
    """Why no broker can be asked there; "" if one seems to answer."""
    try:
        connection = socket.create_connection((address.host, address.port), connect_timeout_s)
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeError as error:
        return f"it is no host name: {error}"
    with connection:
        connection.settimeout(answer_timeout_s)
        try:
            connection.sendall(b"".join(versions.ask(_CORRELATION_ID, "quorumlog-cli")))
            return _judged(_first_bytes(connection))
        except TimeoutError:
            return f"it {SILENT.format(round(answer_timeout_s * 1000))}"
        except ConnectionError:
            return _judged(b"")
        except OSError as error:
            return error.strerror or str(error)


def _first_bytes(connection: socket.socket) -> bytes:
    found = b""
    while len(found) < _START and (more := connection.recv(_START - len(found))):
        found += more
    return found


def _judged(start: bytes) -> str:
    if not start:
        return (
            "the peer closed the connection: is it a broker? (one that wants TLS or a login (security_protocol), or "
            "has max.connections open, does so, too)"
        )
    if start[4:8] == _CORRELATION_ID.to_bytes(4) or start[3:4] == bytes([_SETTINGS]):
        return ""
    what = looks_like(start) or f"it answers {start!r}, which is no answer of Kafka's protocol"
    cure = " Then set security_protocol=SASL_SSL, or SSL, by -X or in a profile" if start[:2] == _ALERT else ""
    return f"{what}: is it a broker?{cure}"
