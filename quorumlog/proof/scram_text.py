"""The messages of SCRAM as text: attributes `letter=value`, separated by commas (RFC 5802 section 7)."""

from __future__ import annotations

import base64
import binascii

MAX_MESSAGE_BYTES = 1024  # a longer message is refused before it is read
NONCE_BYTES = 18  # random bytes of each side
NONCE_CHARACTERS = 24  # of them in base64, which pads nothing here
NO_BINDING = "n,,"  # gs2 header: no channel binding, no other identity
_HEADERS = (NO_BINDING, "y,,")  # y: the client could bind to a TLS channel, which there is not


class BadMessage(Exception):
    """The bytes are not the expected message of SCRAM."""


def read_header(message: str) -> str:
    """The gs2 header with which a client's first message begins. Raises BadMessage."""
    header = message[: len(NO_BINDING)]
    if header not in _HEADERS:
        raise BadMessage("its first message does not begin with `n,,` or `y,,`")
    return header


def text_of(message: bytes) -> str:
    """Raises BadMessage."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise BadMessage(f"a message of {len(message)} bytes; {MAX_MESSAGE_BYTES} are allowed")
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise BadMessage("a message is not UTF-8") from None


def read_attributes(text: str, letters: str) -> list[str]:
    """The values of the attributes with these letters, which must come first and in this order. Later attributes are
    extensions, and are ignored. Raises BadMessage."""
    parts = text.split(",")
    if len(parts) < len(letters):
        raise BadMessage(f"a message has {len(parts)} attributes, not {len(letters)}")
    for part, letter in zip(parts, letters, strict=False):
        if not part.startswith(f"{letter}="):  # also `m=`, an extension that must be understood
            raise BadMessage(f"attribute {letter!r} is missing")
    return [part[2:] for part in parts[: len(letters)]]


def escape_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def read_name(escaped: str) -> str:
    """Raises BadMessage."""
    name = escaped.replace("=2C", ",").replace("=3D", "=")
    if escape_name(name) != escaped:
        raise BadMessage("the name is not escaped as SCRAM requires")
    return name


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def from_base64(text: str) -> bytes:
    """Raises BadMessage, also for a second spelling of the same bytes."""
    try:
        data = base64.b64decode(text.encode("utf-8"), validate=True)
    except (binascii.Error, ValueError):
        raise BadMessage("a value is not base64") from None
    if to_base64(data) != text:
        raise BadMessage("a value is not base64 in its one form")
    return data


def new_nonce(random_bytes: bytes) -> str:
    assert len(random_bytes) == NONCE_BYTES
    return to_base64(random_bytes)


def check_nonce(nonce: str) -> str:
    """Raises BadMessage unless the nonce can be a random one of our length."""
    if len(nonce) < NONCE_CHARACTERS or not nonce.isascii() or not nonce.isprintable() or " " in nonce:
        raise BadMessage(f"a nonce of {len(nonce)} characters; {NONCE_CHARACTERS} printable ones are needed")
    return nonce
