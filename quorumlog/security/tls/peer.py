"""Who a certificate speaks for: a principal by its name, a node by its URI. And its fingerprint.

Nothing here says that the certificate is valid: TLS has verified it before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from quorumlog.ids import NodeId
from quorumlog.security.principal import ANONYMOUS, USER, Principal
from quorumlog.security.tls.der import (
    BOOLEAN,
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    BadDer,
    Element,
    read_elements,
    read_oid,
    read_one,
)
from quorumlog.security.tls.distinguished_name import read_name
from quorumlog.security.tls.mapping import Mapping

_VERSION, _EXTENSIONS = 0xA0, 0xA3  # tags of the parts of a certificate that may be absent
_VALIDITY, _SUBJECT = 3, 4  # behind the version: serial number, algorithm, issuer, validity, subject
_TIMES = {0x17: ("%y%m%d%H%M%SZ", 13), 0x18: ("%Y%m%d%H%M%SZ", 15)}  # UTCTime, GeneralizedTime (RFC 5280, 4.1.2.5)
_ALTERNATIVE_NAMES = "2.5.29.17"
_URI = 0x86
MAX_NODE_ID = 2**31 - 1
MAX_CERTIFICATE_BYTES = 128 << 10  # OpenSSL takes 100 KiB of a whole chain from a peer
_NODE = re.compile(r"quorumlog://([A-Za-z0-9_-]{1,64})/node/(0|[1-9][0-9]{0,9})")


class ClusterNode(NamedTuple):
    """A node, and the cluster that it is one of."""

    cluster_id: str
    node_id: NodeId


def principal_of(der: bytes, rules: Mapping) -> Principal | None:
    """Of a peer's certificate. None: no rule gives it a name, and its connection is closed; it is never ANONYMOUS."""
    try:
        name = rules.name_of(read_subject(der))
    except BadDer:
        return None
    return None if name is None or name == ANONYMOUS.name else Principal(USER, name)


def node_of(der: bytes) -> ClusterNode | None:
    """None: it has no URI of a node, or more than one."""
    try:
        found = [content for tag, content in read_alternative_names(der) if tag == _URI]
    except BadDer:
        return None
    nodes = [match for uri in found if (match := _NODE.fullmatch(uri.decode("latin-1")))]
    if len(nodes) != 1 or int(nodes[0][2]) > MAX_NODE_ID:
        return None
    return ClusterNode(nodes[0][1], NodeId(int(nodes[0][2])))


def node_uri(node: ClusterNode) -> str:
    """What `node_of` reads. Raises ValueError for a cluster id that it would not read."""
    uri = f"quorumlog://{node.cluster_id}/node/{node.node_id}"
    if not _NODE.fullmatch(uri) or node.node_id > MAX_NODE_ID:
        raise ValueError(f"{uri}: a cluster id has letters, digits, - and _ only; a node id is from 0 to {MAX_NODE_ID}")
    return uri


def fingerprint(der: bytes) -> str:
    """SHA-256 of a certificate, 64 hexadecimal figures in lower case."""
    return hashlib.sha256(der).hexdigest()


def read_subject(der: bytes) -> str:
    """der: a certificate. Its subject as Java prints it. Raises BadDer."""
    parts = _parts(der)
    if len(parts) <= _SUBJECT:
        raise BadDer("a certificate without a subject")
    return read_name(parts[_SUBJECT].whole)


def read_not_after_ms(der: bytes) -> int:
    """der: a certificate. When it ends, wall clock; a connection that rests on it ends then, too. Raises BadDer."""
    parts = _parts(der)
    moments = list(read_elements(parts[_VALIDITY].content)) if len(parts) > _SUBJECT else []
    if len(moments) != 2 or moments[1].tag not in _TIMES:
        raise BadDer("a certificate without an end")
    form, length = _TIMES[moments[1].tag]
    text = moments[1].content.decode("latin-1")
    try:
        if len(text) != length:
            raise ValueError(text)
        found = datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        raise BadDer("an end of validity that is no time") from None
    if moments[1].tag == 0x17 and found.year >= 2050:  # two figures are of 1950 to 2049
        found = found.replace(year=found.year - 100)
    return int(found.timestamp()) * 1000


def read_alternative_names(der: bytes) -> tuple[tuple[int, bytes], ...]:
    """der: a certificate. Tag and content of each of its alternative names, in their order. Raises BadDer."""
    for part in _parts(der):
        if part.tag == _EXTENSIONS:
            for oid, value in _extensions(part.content):
                if oid == _ALTERNATIVE_NAMES:
                    return tuple((name.tag, name.content) for name in read_elements(read_one(value, SEQUENCE)))
    return ()


def _parts(der: bytes) -> list[Element]:
    """Those of what a certificate's signature is about, without the version."""
    if len(der) > MAX_CERTIFICATE_BYTES:
        raise BadDer(f"a certificate of {len(der)} bytes, more than {MAX_CERTIFICATE_BYTES}")
    signed = next(read_elements(read_one(der, SEQUENCE)), None)
    if signed is None or signed.tag != SEQUENCE:
        raise BadDer("no certificate")
    parts = list(read_elements(signed.content))
    return parts[1:] if parts and parts[0].tag == _VERSION else parts


def _extensions(content: bytes) -> Iterator[tuple[str, bytes]]:
    for extension in read_elements(read_one(content, SEQUENCE)):
        parts = [part for part in read_elements(extension.content) if part.tag != BOOLEAN]
        if [part.tag for part in parts] != [OBJECT_IDENTIFIER, OCTET_STRING]:
            raise BadDer("an extension that is no type and value")
        yield read_oid(parts[0].content), parts[1].content
