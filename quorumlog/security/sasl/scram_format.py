"""The users that a new cluster begins with, as `storage format --add-scram` takes them (KIP-900).

    SCRAM-SHA-512=[name=ada,password=p]
    SCRAM-SHA-256=[name="ops,eu=1",iterations=8192,salt="c2FsdA==",saltedpassword="..."]

Parts are divided at commas that stand outside double quotes. Salt and salted password are in base64.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field

from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.stored_keys import (
    BY_TITLE,
    DEFAULT_ITERATIONS,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SALT_BYTES,
    ScramMechanism,
    salted_password,
    stored_credential,
)

KEYS = ("name", "password", "salt", "saltedpassword", "iterations")


class BadUser(ValueError):
    """The text does not say a user. The message holds nothing secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstUser:
    """Either password or salted; with the latter the salt, too."""

    name: str
    mechanism: ScramMechanism
    iterations: int = DEFAULT_ITERATIONS
    password: str | None = field(default=None, repr=False)
    salt: bytes | None = field(default=None, repr=False)
    salted: bytes | None = field(default=None, repr=False)

    def credential(self, seed: bytes) -> ScramCredential:
        """seed: a secret that all nodes share. A salt that is not given is made from it, so that each voter begins with
        the same record."""
        salt = self.salt
        if salt is None:
            salt = hmac.digest(seed, f"first user {self.mechanism.title} {self.name}".encode(), "sha256")[:SALT_BYTES]
        salted = self.salted
        if salted is None:
            assert self.password is not None
            salted = salted_password(self.mechanism, self.password, salt, self.iterations)
        return stored_credential(self.mechanism, salted, salt, self.iterations)


def parse_first_user(text: str) -> FirstUser:
    """Raises BadUser."""
    title, found, rest = text.strip().partition("=")
    mechanism = BY_TITLE.get(title.strip())
    rest = rest.strip()
    if not found or mechanism is None or not (rest.startswith("[") and rest.endswith("]")):
        raise BadUser(f"write {' or '.join(BY_TITLE)}, then =[name=USER,password=...]")
    given: dict[str, str] = {}
    for number, part in enumerate(_parts(rest[1:-1]), start=1):
        key, found, value = part.partition("=")
        key = key.strip()
        if not found or key not in KEYS:
            raise BadUser(f"part {number} is not KEY=VALUE with one of {', '.join(KEYS)}")
        if key in given:
            raise BadUser(f"{key} is given twice")
        given[key] = _unquoted(value.strip())
    return _user(mechanism, given)


def _user(mechanism: ScramMechanism, given: dict[str, str]) -> FirstUser:
    if not given.get("name"):
        raise BadUser("there is no name=USER")
    if ("password" in given) == ("saltedpassword" in given) or given.get("password") == "":
        raise BadUser("give either password or saltedpassword")
    if "saltedpassword" in given and "salt" not in given:
        raise BadUser("saltedpassword needs its salt")
    salt = _base64("salt", given["salt"]) if "salt" in given else None
    if salt == b"":
        raise BadUser("salt is empty")
    salted = _base64("saltedpassword", given["saltedpassword"]) if "saltedpassword" in given else None
    if salted is not None and len(salted) != mechanism.key_bytes:
        raise BadUser(f"saltedpassword has {len(salted)} bytes; {mechanism.title} has {mechanism.key_bytes}")
    return FirstUser(
        name=given["name"],
        mechanism=mechanism,
        iterations=_iterations(given.get("iterations", str(DEFAULT_ITERATIONS))),
        password=given.get("password"),
        salt=salt,
        salted=salted,
    )


def _parts(text: str) -> Iterator[str]:
    start, quoted = 0, False
    for index, sign in enumerate(text):
        if sign == '"':
            quoted = not quoted
        elif sign == "," and not quoted:
            yield text[start:index]
            start = index + 1
    if quoted:
        raise BadUser("a quote is not closed")
    yield text[start:]


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value


def _base64(key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadUser(f"{key} is not base64") from None


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and MIN_ITERATIONS <= int(text[:9]) <= MAX_ITERATIONS):
        raise BadUser(f"iterations is a number from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)
