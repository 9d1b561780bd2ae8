"""A private key, its chain and the trusted authorities: read from where settings say, and checked before use.

What comes out is in a form that everybody takes: the key without a password as PKCS#8, which gRPC and Python read
alike. A key in another form (SEC1, PKCS#1) or behind a password is converted here, so that nothing asks for one later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from quorumlog.security.tls.der import BadDer
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.files import Files
from quorumlog.security.tls.peer import read_subject
from quorumlog.security.tls.pem import MAX_BYTES, Block, read_blocks
from quorumlog.security.tls.settings import KEY_PASSWORD, ServerTls, TlsSettings

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MAX_CHAIN = 10  # certificates; OpenSSL goes no further by default
_AS_TEXT = "as text"  # the place of what stands in the settings themselves


@dataclass(frozen=True, slots=True)
class Material:
    """PEM. key: PKCS#8 without a password, or empty. chain: the leaf first. authorities: empty: the system's.

    leaf: DER. not_after_ms: when the first certificate of the chain ends, wall clock; None without a chain.
    """

    key: bytes = field(default=b"", repr=False)
    chain: bytes = field(default=b"", repr=False)
    authorities: bytes = field(default=b"", repr=False)
    leaf: bytes = field(default=b"", repr=False)
    not_after_ms: int | None = None


def read_material(tls: TlsSettings, files: Files, wall_ms: int) -> Material:
    """Raises BadTls if something is missing, does not fit, or is not valid at `wall_ms`."""
    authorities = _authorities(tls, files) if tls.has_trust else b""
    if not tls.has_key:
        return Material(authorities=authorities)
    if tls.keystore_location is not None:
        blocks = _blocks(tls.key_name, tls.keystore_location, _read(tls.key_name, tls.keystore_location, files))
        if isinstance(tls, ServerTls) and any(block.is_key for block in blocks):
            _must_be_private(tls, tls.keystore_location, files)
        keys, certificates, place = blocks, blocks, tls.keystore_location
    else:
        keys = _blocks(tls.key_name, _AS_TEXT, (tls.keystore_key or "").encode())
        certificates = _blocks(tls.chain_name, _AS_TEXT, (tls.keystore_chain or "").encode())
        place = _AS_TEXT
    key, private = _private_key(tls, place, keys)
    chain = [block for block in certificates if block.is_certificate]
    parsed = _chain(f"{tls.chain_name} ({place})", chain, private.public_key(), wall_ms)
    return Material(
        key=key,
        chain=b"".join(block.text() for block in chain),
        authorities=authorities,
        leaf=chain[0].der,
        not_after_ms=min(_ms(one.not_valid_after_utc) for one in parsed),
    )


def trusts_itself(material: Material) -> bool:
    """Whether one of its authorities is in its own chain, or has issued a certificate there."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    def issued(authority: x509.Certificate, own: x509.Certificate) -> bool:
        try:
            own.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            return False  # of another name, of another kind of key, or of the same name and not its signature
        return True

    authorities = x509.load_pem_x509_certificates(material.authorities)
    chain = x509.load_pem_x509_certificates(material.chain)
    return any(own == authority or issued(authority, own) for own in chain for authority in authorities)


def _read(key: str, path: str, files: Files) -> bytes:
    try:
        return files.read(path, MAX_BYTES + 1)
    except OSError as error:
        raise BadTls(
            f"{key}: {path} cannot be read: {error.strerror or error}. Check the path and the rights"
        ) from error


def _must_be_private(tls: TlsSettings, path: str, files: Files) -> None:
    try:
        is_open = files.others_read(path)
    except OSError:
        return  # reading it says why
    if is_open:
        raise BadTls(
            f"{tls.key_name}: {path} has a private key, and others than its owner may read it: "
            f"chmod 600 {path} (640 if it is root's)"
        )


def _blocks(key: str, place: str, data: bytes) -> list[Block]:
    try:
        return read_blocks(data)
    except BadTls as error:
        raise BadTls(f"{key} ({place}): {error}") from error


def _authorities(tls: TlsSettings, files: Files) -> bytes:
    name, place = tls.trust_name, tls.truststore_location or _AS_TEXT
    if tls.truststore_location is not None:
        data = _read(name, tls.truststore_location, files)
    else:
        data = (tls.truststore_certificates or "").encode()
    found = [block for block in _blocks(name, place, data) if block.is_certificate]
    if not found:
        raise BadTls(f"{name} ({place}) has no certificate: it needs those of the authorities to trust, in PEM")
    for number, block in enumerate(found, 1):
        try:  # no more than this: bundles of systems have certificates that strict readers refuse, and OpenSSL takes
            read_subject(block.der)
        except BadDer as error:
            raise BadTls(f"{name} ({place}): certificate {number} is damaged or none: {error}") from error
    return b"".join(block.text() for block in found)


def _certificate(said: str, number: int, block: Block) -> Certificate:
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(block.der)
    except (ValueError, TypeError) as error:
        raise BadTls(f"{said}: certificate {number} is damaged or none: {error}") from error


def _private_key(tls: TlsSettings, place: str, blocks: list[Block]) -> tuple[bytes, Any]:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    said, password_key = f"{tls.key_name} ({place})", tls.prefix + KEY_PASSWORD
    keys = [block for block in blocks if block.is_key]
    if len(keys) != 1:
        raise BadTls(f"{said} has {len(keys) or 'no'} private key{'s' * (len(keys) > 1)}, and it needs one, in PEM")
    password = tls.key_password.encode() if keys[0].is_encrypted and tls.key_password else None
    if keys[0].is_encrypted and password is None:
        raise BadTls(f"{said}: the private key is encrypted, and {password_key} is not set")
    try:
        key: Any = serialization.load_pem_private_key(keys[0].text(), password)
    except UnsupportedAlgorithm as error:
        raise BadTls(f"{said}: a private key of this kind is not supported; use RSA or EC") from error
    except (ValueError, TypeError) as error:
        if password is not None:
            raise BadTls(
                f"{said}: the private key does not open with {password_key}: the password is wrong, or the key damaged"
            ) from error
        raise BadTls(
            f"{said}: the private key is damaged, or of a kind that is not supported; use RSA or EC"
        ) from error
    return _pkcs8(key), key


def _pkcs8(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text


def _chain(said: str, blocks: list[Block], public_key: Any, wall_ms: int) -> list[Certificate]:
    """Of a key. Each certificate is issued by the one behind it."""
    if not blocks:
        raise BadTls(f"{said} has no certificate: the chain of the key stands there too, its own certificate first")
    if len(blocks) > MAX_CHAIN:
        raise BadTls(
            f"{said} has {len(blocks)} certificates, more than {MAX_CHAIN}: leave what is no part of the chain out"
        )
    chain = [_certificate(said, number, block) for number, block in enumerate(blocks, 1)]
    if not _fits(chain[0], public_key):
        others = [number for number, one in enumerate(chain[1:], 2) if _fits(one, public_key)]
        cure = f"certificate {others[0]} is, and has to stand first" if others else "one of them is of another pair"
        raise BadTls(f"{said}: the first certificate is not that of the private key; {cure}")
    for number, (one, issuer) in enumerate(pairwise(chain), 1):
        if not is_issued_by(one, issuer):
            raise BadTls(
                f"{said}: certificate {number} is not issued by certificate {number + 1}: put them in order, leaf first"
            )
    for number, one in enumerate(chain, 1):
        if _ms(one.not_valid_after_utc) <= wall_ms:
            raise BadTls(f"{said}: certificate {number} has expired on {one.not_valid_after_utc:%Y-%m-%d}: renew it")
        if _ms(one.not_valid_before_utc) > wall_ms:
            raise BadTls(
                f"{said}: certificate {number} is valid from {one.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on only: "
                "check the clock"
            )
    return chain


def _fits(certificate: Certificate, public_key: Any) -> bool:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        same: bool = certificate.public_key().public_bytes(*form) == public_key.public_bytes(*form)
    except ValueError:  # a key of an algorithm that is not supported
        return False
    return same


def is_issued_by(certificate: Certificate, issuer: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _ms(moment: datetime) -> int:
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)
