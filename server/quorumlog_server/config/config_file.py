"""Reads a node's configuration file. Commands use it too, so it loads no part of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorumlog_server.config.config import NodeConfig, flat_values, from_values, load
from quorumlog_server.config.directory_paths import check_only_in_file
from quorumlog_server.config.properties import ConfigError


def read_config(path: str, changes: Sequence[str], environment: Mapping[str, str]) -> NodeConfig:
    """The file, changed by the environment, then by `KEY=VALUE` of the command line. Raises ConfigError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not changes:
        return load(path, text, environment)
    values = flat_values(path, text, environment)
    for change in changes:
        key, found, value = change.partition("=")
        if not found:
            raise ConfigError(f"-X {change}: write KEY=VALUE")
        check_only_in_file({key.strip(): value}, f"-X {change}")
        values[key.strip()] = value.strip()
    return from_values(values, f"{path} and -X")
