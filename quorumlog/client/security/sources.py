"""Secrets that are named by where they are, so that no file, profile, plan or log holds them.

A whole value may be `env:NAME`, `file:PATH` or `keyring:SERVICE/USER`. Kafka's own references, of KIP-297 and KIP-421,
are `${file:PATH:KEY}`, of a properties file, and `${env:NAME}`; they may also be a part of a value, as in a JAAS line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.security.options import SECRET_NAMES
from quorumlog.client.security.registry_names import is_registry_secret
from quorumlog.security.sasl.jaas import JaasError, read_jaas, write_jaas

MAX_SECRET_BYTES = 64 * 1024
_KINDS = ("env", "file", "keyring")
_INSIDE = re.compile(r"\$\{(file|env):([^{}]+)\}")
JAAS = "sasl_jaas_config"
_SECRETS_OF_JAAS = ("password", "clientSecret", "user_")


class NoSecret(ConfigError):
    """A source cannot be read, or has no secret. is_package: because the package keyring is missing."""

    def __init__(self, text: str, *, is_package: bool = False) -> None:
        super().__init__(text)
        self.is_package = is_package


def source_of(value: object) -> tuple[str, str] | None:
    """The kind and the place, of a value that is nothing but a source in our own spelling."""
    kind, found, place = str(value).partition(":")
    return (kind, place) if found and kind in _KINDS and place else None


def is_reference(name: str, value: object) -> bool:
    """The value names a secret's source, and has nothing beside it that is a secret. name: of the client's option."""
    text = str(value)
    if source_of(value) is not None:
        return True
    if _INSIDE.search(text) is None:
        return False
    if name != JAAS:
        return _is_all_references(text)
    try:
        entry = read_jaas(text)
    except JaasError:
        return False
    secrets = (one.reveal() for key, one in entry.options.items() if key.startswith(_SECRETS_OF_JAAS))
    return all(_is_all_references(one) for one in secrets)


def _is_all_references(text: str) -> bool:
    return not _INSIDE.sub("", text)


def is_secret(name: str, value: object) -> bool:
    """The option of a client or of a schema registry is a secret, or names where one is."""
    return name in SECRET_NAMES or is_registry_secret(name, value)


def with_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """With each secret in the place of its source. options: under the clients' own names.

    Raises NoSecret, which names the option and never a value; ConfigError for a JAAS line that cannot be read.
    """
    return {name: secret_of(name, value) if is_secret(name, value) else value for name, value in options.items()}


def secret_of(name: str, value: object) -> str:
    """name: of the option, for messages. A value without a source is itself. Raises as `with_secrets`."""
    source = source_of(value)
    if source is not None:
        kind, place = source
        readers: dict[str, Callable[[str, str], str]] = {
            "env": _of_environment,
            "file": _of_file,
            "keyring": _of_keyring,
        }
        return readers[kind](name, place)
    text = str(value)
    if _INSIDE.search(text) is None:
        return text
    return _jaas_with_secrets(text) if name == JAAS else _filled(name, text)


def _jaas_with_secrets(text: str) -> str:
    """Filled in behind the parser, so that no sign of a password can end its option."""
    try:
        entry = read_jaas(text)
    except JaasError as error:
        raise ConfigError(str(error)) from None
    return write_jaas(entry.module, {key: _filled(JAAS, one.reveal()) for key, one in entry.options.items()})


def _filled(name: str, text: str) -> str:
    def secret(found: re.Match[str]) -> str:
        kind, place = found[1], found[2]
        return _of_environment(name, place) if kind == "env" else _of_properties(name, place)

    return _INSIDE.sub(secret, text)


def _of_environment(name: str, variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise NoSecret(f"{name}=env:{variable}: there is no variable {variable}; set it, or name another one")
    return value


def _of_file(name: str, place: str) -> str:
    text = _text(name, place).removesuffix("\n").removesuffix("\r")
    if not text:
        raise NoSecret(f"{name}=file:{place}: it has no secret of 1 to {MAX_SECRET_BYTES} bytes; check the path")
    return text


def _of_properties(name: str, place: str) -> str:
    from quorumlog_storage.files.properties import BadProperties, parse_properties

    path, colon, key = place.rpartition(":")
    shown = f"{name}=${{file:{place}}}"
    if not colon or not path:
        raise NoSecret(f"{shown}: it names no key; write ${{file:PATH:KEY}}, or file:PATH for a file with the secret")
    try:
        found = parse_properties(path, _text(name, path).encode()).get(key)
    except BadProperties:
        raise NoSecret(f"{shown}: the file is no properties file; check the path") from None
    if not found:
        raise NoSecret(f"{shown}: the file has no key {key}; check the key")
    return found


def _text(name: str, place: str) -> str:
    try:
        with Path(place).expanduser().open("rb") as file:
            data = file.read(MAX_SECRET_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NoSecret(f"{name}=file:{place}: it cannot be read ({why}); check the path and the rights") from None
    if len(data) > MAX_SECRET_BYTES:
        raise NoSecret(f"{name}=file:{place}: it has no secret of 1 to {MAX_SECRET_BYTES} bytes; check the path")
    return text


def _of_keyring(name: str, place: str) -> str:
    service, _, user = place.rpartition("/")
    try:
        keyring: Any = import_module("keyring")
    except ImportError:
        cure = "install quorumlog[keyring], or use env: or file:"
        text = f"{name}=keyring:{place}: the package keyring is not installed; {cure}"
        raise NoSecret(text, is_package=True) from None
    value = keyring.get_password(service, user) if service and user else None
    if not value:
        raise NoSecret(f"{name}=keyring:{place}: there is no such entry; `keyring set SERVICE USER` makes one")
    return str(value)
