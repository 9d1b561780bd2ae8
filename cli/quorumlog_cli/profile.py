"""Decides which cluster a command uses, and with which options.

The first of these wins: flag, -X, environment, the profile named with --profile, the project's `.quorumlog.toml`, the
user's current profile, `localhost:9092` (CLI.md 2.3). `resolve` is pure; the caller reads the files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorumlog_cli.errors import CliError, Exit

DEFAULT_SERVERS = "localhost:9092"
PROJECT_FILE = ".quorumlog.toml"
ENVIRONMENT_PREFIX = "QUORUMLOG_"
ENVIRONMENT_OPTIONS = ("bootstrap_servers", "client_id", "request_timeout_ms", "transport")
OWN_KEYS = ("data_dir",)  # keys of a profile that are not client options


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of the command line."""

    bootstrap_servers: str | None = None
    options: Sequence[str] = ()  # of -X, each key=value
    profile: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """options: client options without `bootstrap_servers`. origin: where the servers were set, for messages.

    data_dir: folder of the local cluster behind the profile, if there is one.
    """

    bootstrap_servers: str
    origin: str
    options: dict[str, Any] = field(default_factory=dict)
    data_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Profiles:
    """The content of a configuration file. current: the current profile, "" for none."""

    current: str = ""
    by_name: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def resolve(asked: Asked, environment: Mapping[str, str], project: Profiles, user: Profiles) -> Target:
    """Raises CliError if a profile does not exist or an -X is not key=value."""
    named = asked.profile or environment.get(f"{ENVIRONMENT_PREFIX}PROFILE")
    layers: list[tuple[str, Mapping[str, Any]]] = [("the default", {"bootstrap_servers": DEFAULT_SERVERS})]
    layers += [_current(user), _current(project)]
    if named:
        layers.append((f"profile {named!r}", _find(named, project, user)))
    layers.append(("the environment", _from_environment(environment)))
    layers.append(("-X", parse_options(asked.options)))
    if asked.bootstrap_servers:
        layers.append(("--bootstrap-servers", {"bootstrap_servers": asked.bootstrap_servers}))
    return _merge(layers)


def _merge(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Target:
    """A profile replaces everything before it; other layers change single options.

    If another layer sets the servers, the profile's local cluster (`data_dir`) no longer applies.
    """
    merged: dict[str, Any] = {}
    origin = ""
    for name, values in layers:
        if "bootstrap_servers" in values:
            merged = dict(values) if "profile" in name else {**_without_place(merged), **values}
            origin = name
        else:
            merged.update(values)
    servers = merged.pop("bootstrap_servers")
    data_dir = merged.pop("data_dir", None)
    return Target(
        bootstrap_servers=servers if isinstance(servers, str) else ",".join(servers),
        origin=origin,
        options=merged,
        data_dir=Path(data_dir) if data_dir else None,
    )


def _without_place(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in OWN_KEYS}


def parse_options(texts: Sequence[str]) -> dict[str, str]:
    """Options of the form key=value, with Kafka's or underscored keys. Raises CliError."""
    options: dict[str, str] = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise CliError(Exit.USAGE, f"-X {text}: not KEY=VALUE")
        options[key.strip().replace(".", "_").replace("-", "_")] = value.strip()
    return options


def parse_profiles(path: str, text: str) -> Profiles:
    """The file's `current` and `[profiles.*]`. Raises CliError if it is not valid TOML."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CliError(Exit.USAGE, f"{path} is not valid TOML: {error}") from error
    by_name = tree.get("profiles", {})
    if not isinstance(by_name, dict) or not all(isinstance(values, dict) for values in by_name.values()):
        raise CliError(Exit.USAGE, f"{path}: profiles must be tables, [profiles.NAME]")
    return Profiles(str(tree.get("current", "")), by_name)


def _current(profiles: Profiles) -> tuple[str, Mapping[str, Any]]:
    if not profiles.current:
        return "", {}
    return f"profile {profiles.current!r}", _find(profiles.current, profiles)


def _find(name: str, *places: Profiles) -> Mapping[str, Any]:
    for profiles in places:
        if name in profiles.by_name:
            return profiles.by_name[name]
    known = ", ".join(sorted({known for profiles in places for known in profiles.by_name})) or "none"
    raise CliError(Exit.NOT_FOUND, f"there is no profile {name!r}; known profiles: {known}", "quorumlog profile list")


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    names = {option: ENVIRONMENT_PREFIX + option.upper() for option in ENVIRONMENT_OPTIONS}
    return {option: environment[name] for option, name in names.items() if environment.get(name)}
