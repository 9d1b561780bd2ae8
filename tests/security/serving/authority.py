"""A certificate authority of a test, and contexts of the two sides."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


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
        self._directory, self._name = directory, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(f"CA of {name}")
        self._certificate = _build(subject, subject, self._key, self._key, _DAY, [
            (x509.BasicConstraints(ca=True, path_length=0), True),
        ])  # fmt: skip
        self.ca = directory / f"{name}-ca.pem"
        self.ca.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, lasts: datetime.timedelta = _DAY, hosts: tuple[str, ...] | None = None) -> Pair:
        """hosts: names; None: this machine's loopback, and its address."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts or ("localhost",)]
        if hosts is None:
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        certificate = _build(_name(name), self._certificate.subject, key, self._key, lasts, [
            (x509.SubjectAlternativeName(names), False),
        ])  # fmt: skip
        pem = self._directory / f"{self._name}-{name}.pem"
        pem.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
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


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _build(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    lasts: datetime.timedelta,
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + lasts)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA256())
