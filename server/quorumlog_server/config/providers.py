"""`${env:V}`, `${file:PATH:KEY}` and `${dir:PATH:FILE}` in a node's own file (KIP-297, KIP-421, KIP-632, KIP-887).

    config.providers=file
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/run/secrets
    ssl.key.password=${file:/run/secrets/node.properties:key}

Kafka's names; no class is loaded: three are known. Only a file is read so, and never what a client sends or what stands
in the environment (CVE-2024-31141). Files are read below the allowed paths alone, links followed first; Kafka reads any
file where none are named. What cannot be read is an error; in Kafka the text stays. Errors name places, and no values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from quorumlog.settings.key import parse_list
from quorumlog.settings.process import PROVIDERS
from quorumlog_server.config.properties import ConfigError, parse_properties

_PACKAGE = "org.apache.kafka.common.config.provider."
_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")  # Kafka's ConfigTransformer
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Provider:
    """read: (path, key) to the value. Raises ValueError, which says why there is none."""

    read: Callable[[str, str], str]


def resolved(values: Mapping[str, str], where: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The values of a file, with those of its providers in them, and without the providers' own keys. Raises
    ConfigError."""
    names = parse_list(values.get(PROVIDERS, ""))
    of_providers = {key for key in values if key.startswith(f"{PROVIDERS}.")}
    named = {f"{PROVIDERS}.{name}." for name in names}
    for key in sorted(of_providers):
        if not key.startswith(tuple(named)):
            raise ConfigError(f"{where}: {key}: {PROVIDERS} does not name this provider: add it, or remove the key")
    if not names:
        return dict(values)
    providers = {name: _provider(name, values, where, environment) for name in names}
    kept = {key: value for key, value in values.items() if key not in of_providers}
    return {key: _resolve(key, value, providers, where) for key, value in kept.items()}


def _resolve(key: str, value: str, providers: Mapping[str, _Provider], where: str) -> str:
    def read(found: re.Match[str]) -> str:
        name, path, wanted = found[1], found[2] or "", found[3]
        try:
            if name not in providers:
                raise ValueError(f"{PROVIDERS} does not name {name!r}; it has {', '.join(providers)}")
            return providers[name].read(path, wanted)
        except ValueError as error:
            raise ConfigError(f"{where}: {key}: {found[0]}: {error}") from None

    return _VARIABLE.sub(read, value)


def _provider(name: str, values: Mapping[str, str], where: str, environment: Mapping[str, str]) -> _Provider:
    prefix = f"{PROVIDERS}.{name}."
    makers: Mapping[str, Callable[[str, Mapping[str, str], str, Mapping[str, str]], _Provider]] = {
        f"{_PACKAGE}EnvVarConfigProvider": _of_environment,
        f"{_PACKAGE}FileConfigProvider": _of_properties,
        f"{_PACKAGE}DirectoryConfigProvider": _of_directory,
    }
    make = makers.get(values.get(f"{prefix}class", "").strip())
    if make is None:
        raise ConfigError(f"{where}: {prefix}class must be one of {', '.join(makers)}: no other class is loaded")
    return make(prefix, values, where, environment)


def _of_environment(prefix: str, values: Mapping[str, str], where: str, environment: Mapping[str, str]) -> _Provider:
    key = f"{prefix}param.allowlist.pattern"
    try:
        pattern = re.compile(values.get(key, ".*"))
    except re.error as error:
        raise ConfigError(f"{where}: {key} is no regular expression: {error}") from None

    def read(path: str, wanted: str) -> str:
        if path:
            raise ValueError("a variable has no path before its name")
        if not pattern.fullmatch(wanted):
            raise ValueError(f"{key} does not allow it")
        if wanted not in environment:
            raise ValueError("there is no such variable; set it before the node starts")
        return environment[wanted]

    return _Provider(read=read)


def _of_properties(prefix: str, values: Mapping[str, str], where: str, _environment: Mapping[str, str]) -> _Provider:
    allowed = _allowed(prefix, values, where)

    def read(path: str, wanted: str) -> str:
        try:
            found = parse_properties(path, _text(path, allowed))
        except ConfigError:
            raise ValueError("the file is not one of KEY=VALUE lines") from None
        if wanted not in found:
            raise ValueError("the file has no such key")
        return found[wanted]

    return _Provider(read=read)


def _of_directory(prefix: str, values: Mapping[str, str], where: str, _environment: Mapping[str, str]) -> _Provider:
    allowed = _allowed(prefix, values, where)

    def read(path: str, wanted: str) -> str:
        if not path or os.sep in wanted or wanted in ("", ".", ".."):
            raise ValueError("write ${dir:PATH:FILE}, with the name of a file in PATH")
        return _text(os.path.join(path, wanted), allowed).removesuffix("\n").removesuffix("\r")

    return _Provider(read=read)


def _allowed(prefix: str, values: Mapping[str, str], where: str) -> list[str]:
    key = f"{prefix}param.allowed.paths"
    paths = parse_list(values.get(key, ""))
    if not paths or not all(map(os.path.isabs, paths)):
        raise ConfigError(f"{where}: {key} must name the absolute paths below which files may be read")
    return [os.path.realpath(path) for path in paths]


def _text(path: str, allowed: list[str]) -> str:
    """Raises ValueError."""
    real = os.path.realpath(path)
    if not any(os.path.commonpath((real, one)) == one for one in allowed):
        raise ValueError(f"the file is not below {', '.join(allowed)} (param.allowed.paths)")
    try:
        with Path(real).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"the file has more than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("the file is no UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror or error}") from None
