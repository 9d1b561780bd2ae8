"""Decides which cluster a command uses, and with which options.

The first of these wins: flag, -X, environment, the profile named with --profile, the local cluster of the working
directory or of one above it, the project's `.quorumlog.toml`, the user's current profile, `localhost:9092` (decision
89). `resolve` is pure; the caller reads the files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorumlog.testing.protected import LOGIN_KEYS, PASSWORD_FILE
from quorumlog_cli.terminal.errors import CliError, Exit

DEFAULT_SERVERS = "localhost:9092"
PROJECT_FILE = ".quorumlog.toml"
ENVIRONMENT_PREFIX = "QUORUMLOG_"
_PROFILE_VARIABLE, _SERVERS_VARIABLE = f"{ENVIRONMENT_PREFIX}PROFILE", f"{ENVIRONMENT_PREFIX}BOOTSTRAP_SERVERS"
ENVIRONMENT_OPTIONS = ("bootstrap_servers", "client_id", "request_timeout_ms", "schema_registry_url", "transport")
PLACE_KEYS = ("data_dir", "cluster_id")  # say which cluster a profile's servers are; without meaning for others


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of the command line."""

    bootstrap_servers: str | None = None
    options: Sequence[str] = ()  # of -X, each key=value
    profile: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The local cluster of the working directory, or else of the nearest one above it (`is_below`).

    security: options of a client that logs in there; the password is named by its place.
    """

    root: Path
    cluster_id: str
    bootstrap_servers: str
    is_below: bool = False
    security: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """options: client options without `bootstrap_servers`. registry: options of a schema registry. origin: where the
    servers were set, for messages.

    data_dir: folder of the local cluster that is meant, if it is one. is_stopped: none of its nodes runs, so that
    whoever answers at its addresses is another cluster.
    """

    bootstrap_servers: str
    origin: str
    options: dict[str, Any] = field(default_factory=dict)
    data_dir: Path | None = None
    is_stopped: bool = False
    registry: dict[str, Any] = field(default_factory=dict)

    @property
    def cluster_id(self) -> str:
        """Empty if it is not known: any cluster at the servers is meant."""
        return str(self.options.get("cluster_id", ""))

    @property
    def name(self) -> str:
        """For messages of what was changed or deleted."""
        which = f"cluster {self.cluster_id}" if self.cluster_id else "the cluster"
        return f"{which} in {self.data_dir}" if self.data_dir else f"{which} at {self.bootstrap_servers}"


@dataclass(frozen=True, slots=True)
class Profiles:
    """The content of a configuration file. current: the current profile, "" for none."""

    current: str = ""
    by_name: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def names_another(asked: Asked, environment: Mapping[str, str]) -> str:
    """The flag or variable that says which cluster is meant, wherever the command is typed; "" if there is none."""
    if asked.bootstrap_servers:
        return "--bootstrap-servers"
    if "bootstrap_servers" in parse_options(asked.options):
        return "-X bootstrap.servers"
    if asked.profile:
        return "QUORUMLOG_BOOTSTRAP_SERVERS" if environment.get(_SERVERS_VARIABLE) else "--profile"
    return next((name for name in (_SERVERS_VARIABLE, _PROFILE_VARIABLE) if environment.get(name)), "")


def resolve(
    asked: Asked, environment: Mapping[str, str], project: Profiles, user: Profiles, here: Here | None = None
) -> Target:
    """Raises CliError if a profile does not exist or an -X is not key=value."""
    named = asked.profile or environment.get(_PROFILE_VARIABLE)
    layers: list[tuple[str, Mapping[str, Any]]] = [("the default", {"bootstrap_servers": DEFAULT_SERVERS})]
    if here is not None and not names_another(asked, environment):
        layers.append((f"the local cluster in {here.root}", _of_place(here)))
    else:
        layers += [_current(user), _current(project)]
    if named:
        layers.append((f"profile {named!r}", _find(named, project, user)))
    layers.append(("the environment", _from_environment(environment)))
    layers.append(_from_flags(asked))
    return _merge(layers)


def _from_flags(asked: Asked) -> tuple[str, dict[str, str]]:
    options = parse_options(asked.options)
    if not asked.bootstrap_servers:
        return "-X", options
    return "--bootstrap-servers", {**options, "bootstrap_servers": asked.bootstrap_servers}


def _of_place(here: Here) -> dict[str, Any]:
    return {
        "bootstrap_servers": here.bootstrap_servers,
        "cluster_id": here.cluster_id,
        "data_dir": str(here.root),
        **here.security,
    }


def _merge(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Target:
    """A profile or a local cluster replaces everything before it; other layers change single options.

    If another layer sets the servers, what the profile says of its cluster (`PLACE_KEYS`, and the login that `up`
    wrote) no longer applies. A user takes the place of the one before, in whichever form that is.
    """
    merged: dict[str, Any] = {}
    origin = ""
    for name, values in layers:
        if "bootstrap_servers" in values:
            whole = name.startswith(("profile ", "the local cluster "))
            merged = dict(values) if whole else {**_without_user(_without_place(merged), values), **values}
            origin = name
        else:
            merged = {**_without_user(merged, values), **values}
    servers = merged.pop("bootstrap_servers")
    data_dir = merged.pop("data_dir", None)
    return Target(
        bootstrap_servers=servers if isinstance(servers, str) else ",".join(servers),
        origin=origin,
        options=merged,
        data_dir=Path(data_dir) if data_dir else None,
    )


def _without_place(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in without_written_login(values).items() if key not in PLACE_KEYS}


def without_written_login(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without the login that `up --tls` wrote, which is for the cluster of `data_dir` alone."""
    own = f"file:{Path(str(values.get('data_dir', ''))) / PASSWORD_FILE}"
    is_written = values.get("sasl_password") == own
    return {key: value for key, value in values.items() if not (is_written and key in LOGIN_KEYS)}


def _without_user(values: Mapping[str, Any], added: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line for JAAS and a name with a password say the same, and clients take one of both."""
    if "sasl_jaas_config" in added:
        return {key: value for key, value in values.items() if key not in ("sasl_username", "sasl_password")}
    if "sasl_username" in added:
        return {key: value for key, value in values.items() if key != "sasl_jaas_config"}
    return values


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
