"""Certificates for tests: an authority of one's own, and what it issues."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """folder: of its files. name: of the authority and of its file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.path = folder / f"{name}.pem"
        builder = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.path.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def issue(
        self, name: str, *, hosts: tuple[str, ...] = (), addresses: tuple[str, ...] = (), expired: bool = False
    ) -> Path:
        """A PEM file with the key and the certificate. hosts: names, which may look like numbers."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(name), self._name, key, ends=-DAY if expired else DAY)
        entries: list[Any] = [x509.DNSName(host) for host in hosts]
        entries += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        if entries:
            builder = builder.add_extension(x509.SubjectAlternativeName(entries), critical=False)
        path = self._folder / f"{name}.keystore.pem"
        path.write_bytes(_private(key) + _pem(builder.sign(self._key, hashes.SHA256())))
        path.chmod(0o600)
        return path


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: timedelta = DAY
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer, subject, key.public_key(), x509.random_serial_number(), now - 2 * DAY, now + ends
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
