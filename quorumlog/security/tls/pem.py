"""PEM (RFC 7468): blocks of base64 between two lines, with any text around them.

As in Kafka (KIP-651), a block may stand in one line of a properties file, with spaces for the line ends.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from quorumlog.security.tls.errors import BadTls

CERTIFICATE = "CERTIFICATE"
_CERTIFICATES = (CERTIFICATE, "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
ENCRYPTED_KEY = "ENCRYPTED PRIVATE KEY"
_KEYS = ("PRIVATE KEY", ENCRYPTED_KEY, "RSA PRIVATE KEY", "EC PRIVATE KEY")
MAX_BYTES = 4 << 20  # of a file or an inline value; a system's bundle of authorities has some 250 kB
MAX_BLOCKS = 2_000
MAX_LABEL_BYTES = 64
_SPACES = b" \t\n\r\v\f"  # base64 may be broken anywhere
_BEGIN = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,%d})-----" % MAX_LABEL_BYTES)
_HEADER = re.compile(rb"\s*[A-Za-z0-9-]+:[^\r\n]*\r?\n")
_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"


@dataclass(frozen=True, slots=True)
class Block:
    """headers: of an old encrypted key, as they were, or empty."""

    label: str
    headers: bytes
    der: bytes

    @property
    def is_key(self) -> bool:
        return self.label in _KEYS

    @property
    def is_encrypted(self) -> bool:
        return self.label == ENCRYPTED_KEY or b"ENCRYPTED" in self.headers

    @property
    def is_certificate(self) -> bool:
        return self.label in _CERTIFICATES

    def __repr__(self) -> str:
        return f"Block({self.label})"

    def text(self) -> bytes:
        """As every reader of PEM takes it."""
        label = (CERTIFICATE if self.is_certificate else self.label).encode()
        code = base64.b64encode(self.der)
        lines = b"\n".join(code[at : at + 64] for at in range(0, len(code), 64))
        headers = self.headers + b"\n" if self.headers else b""
        return b"-----BEGIN %s-----\n%s%s\n-----END %s-----\n" % (label, headers, lines, label)


def read_blocks(data: bytes) -> list[Block]:
    """All blocks of a text. Raises BadTls, with a sentence about the text that names no key."""
    if len(data) > MAX_BYTES:
        raise BadTls(f"{len(data)} bytes are more than {MAX_BYTES}")
    if data.startswith((_JKS, _JCEKS)):
        raise BadTls(
            "this is a Java keystore (JKS), and only PEM is read: `quorumlog tls import FILE` says how to convert it"
        )
    if data.startswith(b"\x30"):
        raise BadTls(
            "this is binary (PKCS#12 or DER), and only PEM is read: `quorumlog tls import FILE` makes it of PKCS#12"
        )
    blocks: list[Block] = []
    position = 0
    while found := _BEGIN.search(data, position):
        if len(blocks) == MAX_BLOCKS:
            raise BadTls(f"it has more than {MAX_BLOCKS} blocks")
        end_line = b"-----END %s-----" % found[1]
        end = data.find(end_line, found.end())
        if end < 0:
            raise BadTls(f"`{found[0].decode()}` has no `{end_line.decode()}`: a part of the text is missing")
        blocks.append(_block(found[1].decode(), data[found.end() : end]))
        position = end + len(end_line)
    return blocks


def _block(label: str, inside: bytes) -> Block:
    start = 0
    while header := _HEADER.match(inside, start):
        start = header.end()
    try:
        der = base64.b64decode(inside[start:].translate(None, _SPACES), validate=True)
    except binascii.Error:
        raise BadTls(f"what stands between BEGIN and END {label} is not base64") from None
    if not der:
        raise BadTls(f"there is nothing between BEGIN and END {label}")
    return Block(label, inside[:start].strip().replace(b"\r\n", b"\n") + b"\n" if start else b"", der)
