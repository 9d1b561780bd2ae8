"""Certificates for tests, right ones and wrong ones: made by hand, not by what `quorumlog tls` issues them with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
EC = ec.SECP256R1()


def key_usage(**on: bool) -> x509.KeyUsage:
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip
    return x509.KeyUsage(**{name: on.get(name, False) for name in names})


@dataclass(frozen=True)
class Pair:
    """A key and its certificate."""

    key: Any
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def key_pem(self, form: str = "PKCS8", password: str = "") -> str:
        kinds = {
            "PKCS8": serialization.PrivateFormat.PKCS8,
            "traditional": serialization.PrivateFormat.TraditionalOpenSSL,
        }
        encryption: Any = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        return str(self.key.private_bytes(serialization.Encoding.PEM, kinds[form], encryption).decode())


def name(common_name: str, **more: str) -> x509.Name:
    attributes = [x509.NameAttribute(getattr(NameOID, key), value) for key, value in more.items()]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def authority(
    common_name: str = "Test CA",
    *,
    issuer: Pair | None = None,
    usage: bool = True,
    critical: bool = True,
    not_after: datetime = NOW + 300 * DAY,
) -> Pair:
    key = ec.generate_private_key(EC)
    builder = _builder(name(common_name), key, issuer, NOW - DAY, not_after)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=critical)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    if usage:
        builder = builder.add_extension(key_usage(key_cert_sign=True, crl_sign=True), critical=True)
    if issuer is not None:
        builder = _with_authority_identifier(builder, issuer)
    return _signed(builder, key, issuer)


def leaf(
    issuer: Pair | None,
    subject: x509.Name | str = "leaf",
    *,
    dns: tuple[str, ...] = (),
    ip: tuple[str, ...] = (),
    uri: tuple[str, ...] = (),
    identifier: bool = True,
    usages: tuple[Any, ...] = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH),
    not_before: datetime = NOW - DAY,
    not_after: datetime = NOW + 30 * DAY,
    key: Any = None,
) -> Pair:
    """issuer: None: signed by itself. identifier: with that of its authority's key."""
    key = key or ec.generate_private_key(EC)
    builder = _builder(name(subject) if isinstance(subject, str) else subject, key, issuer, not_before, not_after)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    names: list[x509.GeneralName] = [x509.DNSName(one) for one in dns]
    names += [x509.IPAddress(ipaddress.ip_address(one)) for one in ip]
    names += [x509.UniformResourceIdentifier(one) for one in uri]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(usages)), critical=False)
    if identifier and issuer is not None:
        builder = _with_authority_identifier(builder, issuer)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _signed(builder, key, issuer)


def _builder(
    subject: x509.Name, key: Any, issuer: Pair | None, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )


def _with_authority_identifier(builder: x509.CertificateBuilder, issuer: Pair) -> x509.CertificateBuilder:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
    return builder.add_extension(identifier, critical=False)


def _signed(builder: x509.CertificateBuilder, key: Any, issuer: Pair | None) -> Pair:
    return Pair(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))
