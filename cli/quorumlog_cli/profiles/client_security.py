"""Options of security as the command line and profiles give them: tables, files of Kafka's tools, and secrets.

A profile may have tables, `[profiles.NAME.sasl]` and `[profiles.NAME.tls]`, or flat options. A secret is named by where
it is (`quorumlog.client.security.sources`). It is read when a command connects, and never shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quorumlog.security.secret import HIDDEN
from quorumlog_cli.terminal.errors import CliError, Exit

_OF_TLS = {
    "ca": "ssl_truststore_location",
    "keystore": "ssl_keystore_location",
    "certificate": "ssl_keystore_location",
    "key": "ssl_key_location",
    "key_password": "ssl_key_password",
}
_FILES = ("ssl_truststore_location", "ssl_keystore_location", "ssl_key_location")


def expanded(options: Sequence[str]) -> list[str]:
    """Of -X and --command-config: the file of a value without `=`, in its place. Raises CliError."""
    return [one for text in options for one in ([text] if "=" in text else _of_file(Path(text)))]


def _of_file(path: Path) -> list[str]:
    from quorumlog_storage.files.properties import BadProperties, parse_properties

    if path.suffix == ".toml":
        text = (
            f"--command-config {path}: it is a profile, and properties are wanted here, as in the .properties file "
            "beside it; a profile goes into the file that quorumlog profile show names, and is chosen by --profile"
        )
        raise CliError(Exit.USAGE, text)
    try:
        values = parse_properties(str(path), path.read_bytes())
    except OSError as error:
        text = f"--command-config {path}: it cannot be read ({error.strerror}); give a file, or -X KEY=VALUE"
        raise CliError(Exit.USAGE, text) from error
    except BadProperties as error:
        raise CliError(Exit.DATA_INVALID, str(error)) from error
    return [f"{key}={value}" for key, value in values.items()]


def flattened(options: Mapping[str, Any]) -> dict[str, Any]:
    """Without tables, under the clients' own names. Raises CliError."""
    from quorumlog.client.security.names import canonical

    flat: dict[str, Any] = {}
    for name, value in options.items():
        if not isinstance(value, Mapping):
            flat[canonical(name)] = value
        elif name in ("sasl", "tls"):
            for key, inner in value.items():
                flat[_in_table(name, str(key))] = inner
        else:
            raise CliError(Exit.USAGE, f"a profile has no table {name!r}; it may have sasl and tls")
    return flat


def _in_table(table: str, key: str) -> str:
    from quorumlog.client.security.names import canonical

    if table == "tls" and key in _OF_TLS:
        return _OF_TLS[key]
    return canonical(f"{'ssl' if table == 'tls' else 'sasl'}_{key}")


def with_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """With each secret in the place of its source. Raises CliError, which names the option and never a value."""
    from quorumlog.client.security import sources

    try:
        return sources.with_secrets(options)
    except sources.NoSecret as error:
        raise CliError(Exit.PRECONDITION if error.is_package else Exit.USAGE, str(error)) from None


def of_registry(options: Mapping[str, Any]) -> dict[str, Any]:
    """What a client of the registry is made with: secrets in place, without what is for serializers. Raises CliError.

    options: those of a target's registry.
    """
    from quorumlog.client.security.registry_names import OF_SERIALIZERS

    return with_secrets({name: value for name, value in options.items() if name not in OF_SERIALIZERS})


def hidden(options: Mapping[str, Any]) -> dict[str, Any]:
    """To be shown: a secret's source, or HIDDEN for one that stands there itself."""
    from quorumlog.client.security.sources import is_reference, is_secret

    return {
        name: HIDDEN if is_secret(name, value) and value and not is_reference(name, value) else value
        for name, value in options.items()
    }


def refuse_secrets(options: Mapping[str, Any]) -> None:
    """Of a profile that is written. Raises CliError."""
    for name, value in hidden(options).items():
        if value == HIDDEN:
            raise CliError(
                Exit.USAGE,
                f"a profile keeps no secret in clear: give {name}=env:NAME, file:PATH or keyring:SERVICE/USER",
            )


def rooted(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of a profile that is written: its files have whole paths, for it is used in other directories, too."""
    return {name: _rooted(name, value) for name, value in options.items()}


def _rooted(name: str, value: Any) -> Any:
    from quorumlog.client.security.names import canonical
    from quorumlog.client.security.registry_names import PREFIX
    from quorumlog.client.security.sources import is_secret, source_of

    if canonical(name.removeprefix(PREFIX)) in _FILES and value:
        return _whole(value)
    source = source_of(value) if is_secret(name, value) else None
    return f"file:{_whole(source[1])}" if source is not None and source[0] == "file" else value


def _whole(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
