"""One TLS handshake with a server of gRPC, before a channel is opened to it: says why none would succeed.

gRPC reports each refusal as a connection that is not there, also that of a certificate, and tries again for ever.
By RFC 8446 a server judges the client's certificate after the client's handshake has ended well, so this waits for
the first bytes of HTTP/2, which a server sends without being asked. Nothing secret is sent. A host that is a number is
compared with address entries of the certificate only; gRPC is less strict there.
"""

from __future__ import annotations

import asyncio
import ssl

from quorumlog.rpc.transport import Address, NotAuthenticated, NotDelivered
from quorumlog.security.tls.refusals import is_of_a_certificate, speaks_no_tls, why_failed

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"  # RFC 9113, 3.4: with empty SETTINGS
ALPN = "h2"  # RFC 9113, 3.2
MAX_ENDS = 3  # without a word; one may be a server that stops
PAUSE_S = 0.1


class NoTls(NotAuthenticated):
    """The peer does not speak TLS, as far as that can be told."""


class NoGrpc(NotDelivered):
    """The peer speaks TLS, and by it no HTTP/2: Kafka's protocol, maybe."""


async def shake_hands(address: Address, context: ssl.SSLContext) -> bytes:
    """The server's certificate, DER, once it has accepted this client's. The caller limits the time.

    context: with ALPN for HTTP/2. Raises NotAuthenticated where one side refuses the other, NoTls if the peer speaks no
    TLS, NoGrpc if it speaks no HTTP/2 by it, NotDelivered where there is no connection.
    """
    for attempt in range(MAX_ENDS):
        if attempt:
            await asyncio.sleep(PAUSE_S)
        try:
            found = await _try(address, context)
        except ssl.SSLError as error:
            if not _is_end(error):
                raise _refusal(address, error) from None
            found = None
        except ConnectionResetError:
            found = None
        except OSError as error:
            raise NotDelivered(f"no connection to {address}: {error.strerror or error}") from None
        except ValueError:
            raise NotDelivered(f"no connection to {address}: no host has such a name") from None
        if found is not None:
            return found
    raise NoTls(
        f"{address} closes the connection before its first answer: it refuses this client's certificate "
        "(ssl.keystore.location), or its listener does not speak TLS"
    )


async def _try(address: Address, context: ssl.SSLContext) -> bytes | None:
    """None: the peer has closed. Raises NoGrpc, and OSError, of which an error of TLS is one."""
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=context, server_hostname=address.host
    )
    try:
        shown: ssl.SSLObject = writer.get_extra_info("ssl_object")
        if shown.selected_alpn_protocol() != ALPN:
            raise NoGrpc(f"{address} does not speak gRPC by TLS")
        writer.write(PREFACE)
        first = await reader.read(1)
        der = shown.getpeercert(binary_form=True)
        return der if first else None
    finally:
        writer.transport.abort()  # else it waits for the peer's end of TLS


def _is_end(error: ssl.SSLError) -> bool:
    return isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)


def _refusal(address: Address, error: ssl.SSLError) -> NotDelivered:
    told = f"TLS with {address}: {why_failed(error)}"
    if speaks_no_tls(error):
        return NoTls(told)
    return NotAuthenticated(told) if is_of_a_certificate(error) else NotDelivered(told)
