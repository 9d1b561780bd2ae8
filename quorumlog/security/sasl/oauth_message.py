"""The messages of OAUTHBEARER (RFC 7628): `n,[a=ID],^Aauth=Bearer TOKEN^A[k=v^A]^A`, where ^A is the byte 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from quorumlog.security.secret import Secret

MAX_MESSAGE_BYTES = 24 * 1024
MAX_TOKEN_CHARACTERS = 16 * 1024
INVALID_TOKEN = b'{"status":"invalid_token"}'  # to a client whose token is refused; it answers with END
END = b"\x01"
_SEPARATOR = "\x01"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750's b64token
_KEY = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]*")
_SCHEME = re.compile(r"(?i)bearer +(.*)", re.DOTALL)
_AUTH = "auth"


class BadMessage(Exception):
    """The bytes are not OAUTHBEARER's message, or they cannot become one."""


@dataclass(frozen=True, slots=True)
class TokenMessage:
    """identity: whom it wants to act for; empty: the token's own. extensions: of SASL (KIP-342)."""

    token: Secret
    identity: str
    extensions: Mapping[str, str]


def read_token_message(message: bytes) -> TokenMessage:
    """Raises BadMessage."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise BadMessage(f"a message of {len(message)} bytes; {MAX_MESSAGE_BYTES} are allowed")
    try:
        text = message.decode("ascii")
    except UnicodeDecodeError:
        raise BadMessage("the message is not ASCII") from None
    header, found, rest = text.partition(_SEPARATOR)
    flag, comma, identity = header.partition(",")
    if not found or flag not in ("n", "y") or not comma or not identity.endswith(","):
        raise BadMessage("the message does not begin with `n,` and an identity")
    pairs = _pairs(rest)
    token = _SCHEME.fullmatch(pairs.pop(_AUTH, ""))
    if token is None or not is_token(token[1]):
        raise BadMessage("the message holds no `auth=Bearer TOKEN`")
    return TokenMessage(Secret(token[1]), _identity(identity[:-1]), pairs)


def _identity(attribute: str) -> str:
    if not attribute:
        return ""
    if not attribute.startswith("a="):
        raise BadMessage("the identity is not `a=NAME`")
    name = attribute[2:].replace("=2C", ",").replace("=3D", "=")
    if not name or name.replace("=", "=3D").replace(",", "=2C") != attribute[2:]:
        raise BadMessage("the identity is not escaped as SASL requires")
    return name


def _pairs(text: str) -> dict[str, str]:
    if not text.endswith(_SEPARATOR + _SEPARATOR):
        raise BadMessage("the message does not end with two separators")
    pairs: dict[str, str] = {}
    for pair in text[:-2].split(_SEPARATOR):
        key, found, value = pair.partition("=")
        if not found or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise BadMessage("a pair is not `key=value`")
        if key in pairs:
            raise BadMessage(f"{key[:40]!r} comes twice")
        pairs[key] = value
    return pairs


def is_token(text: str) -> bool:
    return len(text) <= MAX_TOKEN_CHARACTERS and _TOKEN.fullmatch(text) is not None


def write_token_message(token: Secret, extensions: Mapping[str, str]) -> bytes:
    """Raises BadMessage for a token or an extension that the message cannot hold, without its value."""
    if not is_token(token.reveal()):
        raise BadMessage(f"the token is empty, longer than {MAX_TOKEN_CHARACTERS} characters, or no bearer token")
    for key, value in extensions.items():
        if not _KEY.fullmatch(key) or key == _AUTH or not value or not _VALUE.fullmatch(value):
            raise BadMessage(f"extension {key!r} is not one of letters with a printable value")
    pairs = [f"{_AUTH}=Bearer {token.reveal()}", *(f"{key}={value}" for key, value in extensions.items())]
    return "".join([f"n,,{_SEPARATOR}", *(f"{pair}{_SEPARATOR}" for pair in pairs), _SEPARATOR]).encode()
