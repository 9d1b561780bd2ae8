"""A certificate authority of a test, and contexts of the two sides."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.security.tls.certificates import DAY, authority, leaf


class Pair(NamedTuple):
    """Paths. pem: key and certificate in one file."""

    pem: Path
    ca: Path

    @property
    def der(self) -> bytes:
        """Of the certificate."""
        text = self.pem.read_text()
        return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERTIFICATE-----") :])


class Authority:
    """Writes its files into `directory`."""

    def __init__(self, directory: Path, name: str = "tests") -> None:
        self._directory, self._name, self._own = directory, name, authority(f"CA of {name}")
        self.ca = directory / f"{name}-ca.pem"
        self.ca.write_text(self._own.pem)

    def issue(self, name: str, lasts: timedelta = DAY, hosts: tuple[str, ...] | None = None) -> Pair:
        """hosts: names; None: this machine's loopback, and its address."""
        addresses = ("127.0.0.1",) if hosts is None else ()
        ends = datetime.now(UTC) + lasts
        made = leaf(self._own, name, dns=hosts or ("localhost",), ip=addresses, not_after=ends)
        pem = self._directory / f"{self._name}-{name}.pem"
        pem.write_text(made.key_pem() + made.pem)
        pem.chmod(0o600)
        return Pair(pem, self.ca)


def server_context(pair: Pair, client_auth: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.pem)
    context.load_verify_locations(pair.ca)
    context.verify_mode = client_auth
    return context


def client_context(ca: Path, pair: Pair | None = None, newest: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if pair is not None:
        context.load_cert_chain(pair.pem)
    if newest is not None:
        context.maximum_version = newest
    return context
