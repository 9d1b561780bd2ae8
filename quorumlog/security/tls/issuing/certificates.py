"""Keys and certificates of P-256: an authority that issues no further ones, and leaves for nodes and clients.

They have all that RFC 5280 asks for, so that strict readers take them (`openssl verify -x509_strict`, Python from 3.13
on): identifiers of the subject's and the authority's key, critical basic constraints, and the usages of the key.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.issuing.subjects import NodeSubject, Subject, is_address
from quorumlog.security.tls.peer import ClusterNode, node_uri

if TYPE_CHECKING:
    from cryptography import x509

AUTHORITY_DAYS = 3_652  # ten years
LEAF_DAYS = 90
MAX_LEAF_DAYS = 825  # what other readers take at most
EARLIER = timedelta(minutes=10)  # a certificate begins before it is made: clocks differ
AUTHORITY_NAME = "quorumlog authority"


@dataclass(frozen=True, slots=True)
class Pair:
    """A private key and its certificate."""

    key: Any = field(repr=False)
    certificate: x509.Certificate

    @property
    def key_pem(self) -> bytes:
        """PKCS#8, without a password: the only form that Java takes."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        text: bytes = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return text

    @property
    def certificate_pem(self) -> bytes:
        return pem_of(self.certificate)


def pem_of(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def new_authority(cluster_id: str, now: datetime) -> Pair:
    """Of a cluster; another one of the same cluster has the same name and another key."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    node_uri(ClusterNode(cluster_id, 0))  # raises ValueError for an id that no URI may have
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, cluster_id),
            x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY_NAME),
        ]
    )
    builder = _begun(name, name, key, now, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(key_cert_sign=True, crl_sign=True), critical=True)
    return Pair(key, _signed(builder, key, key))


def issue(authority: Pair, subject: Subject, now: datetime, days: int = LEAF_DAYS) -> Pair:
    """A new key with a certificate for it. It does not outlive its authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    is_node = isinstance(subject, NodeSubject)
    common_name = subject.file_name if isinstance(subject, NodeSubject) else subject.name
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = _begun(name, authority.certificate.subject, key, now, days, authority.certificate.not_valid_after_utc)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(digital_signature=True), critical=True)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH] if is_node else []
    builder = builder.add_extension(x509.ExtendedKeyUsage([*usages, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    if isinstance(subject, NodeSubject):
        uri = node_uri(ClusterNode(cluster_of(authority.certificate), subject.node_id))
        names: list[x509.GeneralName] = [_name(host) for host in subject.hosts]
        names.append(x509.UniformResourceIdentifier(uri))
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Pair(key, _signed(builder, key, authority.key))


def cluster_of(authority: x509.Certificate) -> str:
    """The cluster whose authority it is. Raises BadTls."""
    from cryptography.x509.oid import NameOID

    found = authority.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if len(found) != 1:
        raise BadTls("ca.pem names no cluster: it is not the authority of a folder that `quorumlog tls init` has made")
    return str(found[0].value)


def _name(host: str) -> x509.GeneralName:
    from cryptography import x509

    return x509.IPAddress(ipaddress.ip_address(host)) if is_address(host) else x509.DNSName(host)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: Any, now: datetime, days: int, most: datetime | None = None
) -> x509.CertificateBuilder:
    """most: what it does not outlive."""
    from cryptography import x509

    now = now.astimezone(UTC).replace(microsecond=0)
    end = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(min(end, most) if most is not None else end)
    )


def _signed(builder: x509.CertificateBuilder, key: Any, issuer_key: Any) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = builder.add_extension(own, critical=False).add_extension(of_issuer, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _key_usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=digital_signature, key_cert_sign=key_cert_sign, crl_sign=crl_sign, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
