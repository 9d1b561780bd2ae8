"""What the end of a connection before its login is over says to a client. Pure.

TLS says much by its alerts, but in words that name no option.
"""

from __future__ import annotations

import ssl

from quorumlog.rpc.caller_security import CallerSecurity
from quorumlog.rpc.transport import Address
from quorumlog.security.tls.refusals import is_of_a_certificate, missing_extension, speaks_no_tls


def is_refusal(error: Exception) -> bool:
    """An error of TLS but a bare end, which may be a fault of the network."""
    return isinstance(error, ssl.SSLError | ssl.CertificateError) and not is_early_end(error)


def is_early_end(error: Exception) -> bool:
    """The peer closed, or let the handshake hang."""
    if isinstance(error, ConnectionRefusedError):
        return False
    return isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError)


def sentence(address: Address, security: CallerSecurity, error: Exception | None, has_answered: bool) -> str:
    """What the peer refuses, and which option mends it. has_answered: it has told its versions."""
    if has_answered:
        return (
            f"{address} closes the connection during the login by "
            f"{security.login.mechanism if security.login else 'SASL'}: check sasl_mechanism and the credentials"
        )
    if security.tls is None:
        return f"{address} closes the connection before it answers: does its listener speak TLS (security_protocol)?"
    if isinstance(error, ssl.SSLCertVerificationError):
        return _of_peer(address, error)
    if isinstance(error, ssl.SSLError) and not is_early_end(error):
        if is_of_a_certificate(error):
            return (
                f"{address} refuses this client's certificate ({error.reason}): check ssl_keystore_location, and that "
                "the broker trusts the authority that issued it"
            )
        if speaks_no_tls(error):
            return (
                f"{address} does not speak TLS: set security_protocol to PLAINTEXT or SASL_PLAINTEXT, or use another "
                "port"
            )
        return f"TLS with {address} failed ({error.reason or error}): check ssl_enabled_protocols and ssl_cipher_suites"
    return (
        f"{address} closes the connection before its first answer: it refuses this client's certificate "
        "(ssl_keystore_location), or its listener does not speak TLS (security_protocol) or Kafka's protocol "
        "(transport=grpc)"
    )


def wants_login(address: Address, security: CallerSecurity) -> str:
    wanted = "SASL_PLAINTEXT" if security.tls is None else "SASL_SSL"
    return (
        f"{address} closes the connection at the first request of a client that does not log in: set security_protocol="
        f"{wanted} with sasl_mechanism and credentials, or use another listener"
    )


def _of_peer(address: Address, error: ssl.SSLCertVerificationError) -> str:
    why = error.verify_message or str(error)
    if "ostname mismatch" in why or "IP address mismatch" in why:
        return (
            f"the certificate of {address} does not name this host ({why}): dial a name of the certificate, or set "
            "ssl_endpoint_identification_algorithm= (empty) to accept any"
        )
    if extension := missing_extension(error):
        return (
            f"the certificate of {address} lacks the {extension}: have it issued anew, or set ssl_verify_strict=false"
        )
    return (
        f"the certificate of {address} is not trusted ({why}): set ssl_truststore_location to the PEM file of the "
        "authority that issued it"
    )
