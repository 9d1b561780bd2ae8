"""The messages of SCRAM as text: attributes `letter=value`, separated by commas (RFC 5802 section 7)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

NONCE_RANDOM_BYTES = 17  # that `new_nonce` takes
_NONCE_BITS = 130
_NONCE_CHARACTERS = 26  # of 130 bits in base 36
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class BadMessage(Exception):
    """The bytes are not the expected message of SCRAM."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that was said before the proofs, so that the proofs hold for this exchange only.

    client_first: without its gs2 header. client_final: without the proof. Each as it was received, to the byte.
    """

    client_first: str
    server_first: str
    client_final: str

    def as_bytes(self) -> bytes:
        return f"{self.client_first},{self.server_first},{self.client_final}".encode()


def text_within(message: bytes, max_bytes: int) -> str:
    """Raises BadMessage."""
    if len(message) > max_bytes:
        raise BadMessage(f"a message of {len(message)} bytes; {max_bytes} are allowed")
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise BadMessage("a message is not UTF-8") from None


def read_attributes(text: str, letters: str) -> list[str]:
    """The values of the attributes with these letters, which must come first and in this order. Later attributes are
    extensions, and are ignored. Raises BadMessage."""
    parts = text.split(",", len(letters))
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


def new_nonce(random_bytes: bytes) -> str:
    """Of a side of a login by users: 130 bits in base 36, as Kafka's. random_bytes: 17 that nobody can guess."""
    assert len(random_bytes) == NONCE_RANDOM_BYTES
    number = int.from_bytes(random_bytes) >> (8 * NONCE_RANDOM_BYTES - _NONCE_BITS)
    digits = ""
    for _ in range(_NONCE_CHARACTERS):
        number, digit = divmod(number, len(_DIGITS))
        digits += _DIGITS[digit]
    return digits


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
