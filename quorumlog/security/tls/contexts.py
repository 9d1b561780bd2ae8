"""Contexts of Python's ssl from checked material: a new one for each generation, because a context only learns more
authorities and forgets none.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.files import RealFiles
from quorumlog.security.tls.material import Material, read_material
from quorumlog.security.tls.settings import CIPHER_SUITES, ClientAuth, ClientTls, ServerTls, TlsSettings

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_ASKS = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


def server_context(tls: ServerTls, material: Material | None = None) -> ssl.SSLContext:
    """material: None: read it now, from this machine. Raises BadTls.

    Where certificates of clients count, no session is resumed by a ticket, because that would not look at the
    certificate again.
    """
    material = material or read_here(tls)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_up(context, tls, material)
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    context.verify_mode = _ASKS[tls.client_auth]
    if tls.client_auth is not ClientAuth.NONE:
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    return context


def client_context(tls: ClientTls, material: Material | None = None) -> ssl.SSLContext:
    """material: None: read it now, from this machine. Raises BadTls.

    A host that is a number is compared with address entries only, a name with the names (Python decides by the text).
    """
    material = material or read_here(tls)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.check_hostname
    context.verify_mode = ssl.CERT_REQUIRED
    _set_up(context, tls, material)
    if not material.authorities:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def read_here(tls: TlsSettings) -> Material:
    """From this machine's files, valid now. Raises BadTls."""
    return read_material(tls, RealFiles(), time.time_ns() // 1_000_000)


def _set_up(context: ssl.SSLContext, tls: TlsSettings, material: Material) -> None:
    context.minimum_version = _VERSIONS[tls.protocols[0]]
    context.maximum_version = _VERSIONS[tls.protocols[-1]]
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java: what the truststore has is trusted itself
    if tls.strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    else:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if tls.ciphers:
        try:
            context.set_ciphers(tls.ciphers)
        except ssl.SSLError as error:
            raise BadTls(f"{tls.prefix}{CIPHER_SUITES}: OpenSSL of this machine has none of these suites") from error
    if material.authorities:
        context.load_verify_locations(cadata=material.authorities.decode())
    if material.chain:
        _load_pair(context, tls, material)


def _load_pair(context: ssl.SSLContext, tls: TlsSettings, material: Material) -> None:
    """From a file in memory: what was checked is what is loaded, whatever has happened to the files since."""
    try:
        with _as_file(material.key + material.chain) as path:
            context.load_cert_chain(path, password=_never)
    except ssl.SSLError as error:
        raise BadTls(f"{tls.chain_name}: OpenSSL does not take this key and certificate: {error.reason}") from error


def _never() -> bytes:
    raise AssertionError("a key without a password asks for one")


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """The path of a file with `data` that nobody else can open, and that is gone afterwards."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        number = os.memfd_create("tls", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{number}"
    else:
        with tempfile.NamedTemporaryFile() as file:  # readable by its owner only
            file.write(data)
            file.flush()
            yield file.name
