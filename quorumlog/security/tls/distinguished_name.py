"""A distinguished name as Java prints it: RFC 2253 by `X500Principal.getName()`, which Kafka's principals are.

Made from the DER, because a text that another library has made of it has lost the types of its values. What differs
from RFC 4514: only nine attributes have names, the value of any other one is `#` and its DER in hexadecimal; `=`
and every `#` are escaped; bytes are read as UTF-8 whatever the type of the string says.
"""

from __future__ import annotations

from quorumlog.security.tls.der import OBJECT_IDENTIFIER, SEQUENCE, SET, BadDer, read_elements, read_oid, read_one

_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString; not UniversalString
_TEXTS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
_ESCAPED = {**{ord(sign): f"\\{sign}" for sign in ',=+<>#;"\\'}, 0: "\\00"}
_SPACES = " \r"  # Java takes a carriage return for one


def read_name(der: bytes) -> str:
    """der: a Name, the outer SEQUENCE included. Empty for the empty name. Raises BadDer."""
    parts = [_part(element.content) for element in read_elements(read_one(der, SEQUENCE)) if _is(element.tag, SET)]
    return ",".join(reversed(parts))


def _is(tag: int, wanted: int) -> bool:
    if tag != wanted:
        raise BadDer(f"tag 0x{tag:02x} in a name, not 0x{wanted:02x}")
    return True


def _part(content: bytes) -> str:
    """One relative name; several attributes in it are joined by `+`, in the order of the bytes."""
    attributes = [_attribute(element.content) for element in read_elements(content) if _is(element.tag, SEQUENCE)]
    if not attributes:
        raise BadDer("a part of a name without an attribute")
    return "+".join(attributes)


def _attribute(content: bytes) -> str:
    pair = list(read_elements(content))
    if len(pair) != 2 or pair[0].tag != OBJECT_IDENTIFIER:
        raise BadDer("an attribute of a name that is no type and value")
    (_, _, kind), value = pair
    oid = read_oid(kind)
    if oid not in _NAMES or value.tag not in _TEXTS:
        return f"{_NAMES.get(oid, oid)}=#{value.whole.hex()}"
    return f"{_NAMES[oid]}={_escaped(value.content.decode(errors='replace'))}"


def _escaped(value: str) -> str:
    text = value.translate(_ESCAPED)
    inner = text.strip(_SPACES)
    if not inner:
        return "".join(f"\\{sign}" for sign in text)
    before, _, behind = text.partition(inner)
    return "".join([*(f"\\{sign}" for sign in before), inner, *(f"\\{sign}" for sign in behind)])
