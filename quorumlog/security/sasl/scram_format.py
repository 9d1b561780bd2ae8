"""`--add-scram`: a credential of a new cluster, as one argument (KIP-900).

    SCRAM-SHA-512=[name=NAME,password=PASSWORD]
    SCRAM-SHA-256=[name=NAME,salt=BASE64,saltedpassword=BASE64,iterations=8192]

It is read as Kafka's ScramParser reads it: divided at every comma, also in quotes; one pair of double quotes around a
value is taken away. Everybody on a machine can read a command's arguments, so here `password=@FILE` and
`password=env:NAME` name a place for the password instead. An error tells keys and no value.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.mechanism import check_utf8
from quorumlog.security.sasl.scram_keys import (
    HASHES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    credential_of,
    salted_password,
)
from quorumlog.security.secret import Secret

MAX_CHARACTERS = 8 * 1024
SALT_BYTES = 16  # that the caller draws for a password
_KEYS = ("name", "password", "salt", "saltedpassword", "iterations")
_SALTED_BYTES = {"sha256": 32, "sha512": 64}
_ARGUMENT = "--add-scram"


@dataclass(frozen=True, slots=True)
class InClear:
    """The password stood in the argument."""

    password: Secret


@dataclass(frozen=True, slots=True)
class InFile:
    """The first line of a file, without its end."""

    path: str


@dataclass(frozen=True, slots=True)
class InEnvironment:
    """A variable of the environment."""

    variable: str


PasswordSource = InClear | InFile | InEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramArgument:
    """Either password, or salt and salted_password, which is as good as the password (RFC 5802, section 9)."""

    mechanism: str
    name: str
    iterations: int
    password: PasswordSource | None
    salt: bytes | None
    salted_password: Secret | None  # as base64


def read_scram_argument(text: str) -> ScramArgument:
    """Raises ValueError."""
    if len(text) > MAX_CHARACTERS:
        raise _error(f"it has {len(text)} characters; {MAX_CHARACTERS} are allowed")
    mechanism, found, rest = text.partition("=")
    if not found or mechanism not in HASHES:
        raise _error(f"it must begin with one of {', '.join(f'{name}=[' for name in HASHES)}")
    rest = _unquoted(rest)
    if not (rest.startswith("[") and rest.endswith("]")):
        raise _error("after the mechanism must stand [name=...,password=...]")
    values = _pairs(rest[1:-1])
    name = values.get("name", "")
    if not name or not name.isascii():
        raise _error("`name` is missing, empty or not ASCII, which SCRAM's clients could not log in with")
    password, salted, salt = values.get("password"), values.get("saltedpassword"), values.get("salt")
    if (password is None) == (salted is None):
        raise _error("it needs one of `password` and `saltedpassword`")
    if salted is not None and salt is None:
        raise _error("`saltedpassword` needs the `salt` with which it was made")
    if salted is not None and len(_from_base64("saltedpassword", salted)) != _SALTED_BYTES[HASHES[mechanism]]:
        raise _error(f"`saltedpassword` must be {_SALTED_BYTES[HASHES[mechanism]]} bytes for {mechanism}")
    return ScramArgument(
        mechanism=mechanism,
        name=name,
        iterations=_iterations(values.get("iterations", str(MIN_ITERATIONS))),
        password=None if password is None else _source(password),
        salt=None if salt is None else _from_base64("salt", salt),
        salted_password=None if salted is None else Secret(salted),
    )


def read_password(source: PasswordSource, read_text: Callable[[str], str], environment: Mapping[str, str]) -> Secret:
    """read_text: the content of the file at a path; its OSError is told. Raises ValueError."""
    if isinstance(source, InClear):
        return source.password
    if isinstance(source, InEnvironment):
        password = environment.get(source.variable, "")
        place = f"the variable {source.variable} of the environment"
    else:
        try:
            password = read_text(source.path).partition("\n")[0].removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise _error(f"the password's file {source.path} cannot be read: {error}") from None
        place = f"the first line of {source.path}"
    if not password:
        raise _error(f"{place} is empty, and holds no password")
    return Secret(password)


def make_credential(argument: ScramArgument, password: Secret | None, new_salt: bytes) -> ScramCredential:
    """password: of `read_password`; None where the argument holds a salted one. new_salt: random; for an argument
    without a salt. Takes milliseconds."""
    salt = new_salt if argument.salt is None else argument.salt
    if argument.salted_password is not None:
        salted = _from_base64("saltedpassword", argument.salted_password.reveal())
    else:
        assert password is not None
        check_utf8(argument.name, password)
        salted = salted_password(password.reveal(), salt, argument.iterations, HASHES[argument.mechanism])
    return credential_of(argument.mechanism, salted, salt, argument.iterations)


def _pairs(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    components = text.split(",", len(_KEYS))  # one more than there are keys: it is refused, whatever it holds
    for number, component in enumerate(components, start=1):
        key, found, value = component.strip().partition("=")
        if not found or key not in _KEYS:
            cure = "write a password with a comma in it as password=@FILE or password=env:NAME"
            raise _error(f"part {number} is none of {', '.join(f'{one}=' for one in _KEYS)}; {cure}")
        if key in values:
            raise _error(f"`{key}` comes twice")
        values[key] = _unquoted(value)
        if not values[key]:
            raise _error(f"`{key}` is empty")
    return values


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value


def _source(password: str) -> PasswordSource:
    if password.startswith("@"):
        return InFile(password[1:])
    if password.startswith("env:"):
        return InEnvironment(password.removeprefix("env:"))
    return InClear(Secret(password))


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and MIN_ITERATIONS <= int(text[:10]) <= MAX_ITERATIONS):
        raise _error(f"`iterations` must be {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)


def _from_base64(key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("utf-8"), validate=True)
    except (binascii.Error, ValueError):
        raise _error(f"`{key}` is not base64") from None


def _error(reason: str) -> ValueError:
    return ValueError(f"{_ARGUMENT}: {reason}")
