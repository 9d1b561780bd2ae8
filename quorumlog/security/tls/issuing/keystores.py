"""Keystores of Java into PEM: PKCS#12 by us, JKS by Java's own tool first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.issuing.certificates import pem_of

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MAX_BYTES = 4 << 20
_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


@dataclass(frozen=True, slots=True)
class Imported:
    """key: PKCS#8 in PEM, or empty: a truststore. certificates: PEM, the leaf first; without a key in their order."""

    key: bytes
    certificates: bytes
    count: int


def read_keystore(data: bytes, password: str | None) -> Imported:
    """Raises BadTls."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    if len(data) > MAX_BYTES:
        raise BadTls(f"{len(data)} bytes are more than {MAX_BYTES}")
    if data.startswith(_JKS):
        raise BadTls("this is a keystore in Java's old format (JKS)")
    if data.lstrip().startswith(b"-----BEGIN"):
        raise BadTls("this is PEM already, and needs no import")
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadTls(
            "this is no PKCS#12, or its password is another one (a file with RC2 or 3DES: "
            "`openssl pkcs12 -legacy -in OLD -nodes | openssl pkcs12 -export -out NEW` renews it)"
        ) from error
    others = [one.certificate for one in found.additional_certs]
    if found.key is None:
        certificates = [*([found.cert.certificate] if found.cert else []), *others]
        if not certificates:
            raise BadTls("this keystore is empty")
        return Imported(b"", b"".join(map(pem_of, certificates)), len(certificates))
    if found.cert is None:
        raise BadTls("this keystore has a private key without its certificate")
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = _in_order(found.cert.certificate, others)
    return Imported(key, b"".join(map(pem_of, chain)), len(chain))


def _in_order(leaf: Certificate, others: list[Certificate]) -> list[Certificate]:
    """The chain from the leaf on; what is no part of it is left out."""
    from cryptography.exceptions import InvalidSignature

    chain = [leaf]
    while True:
        for other in others:
            try:
                chain[-1].verify_directly_issued_by(other)
            except (ValueError, TypeError, InvalidSignature):
                continue
            if other not in chain:
                chain.append(other)
                break
        else:
            return chain
