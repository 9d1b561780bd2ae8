"""The paths of `log.dirs` and `cordoned.log.dirs`, as a node's file may name them."""

from __future__ import annotations

import os

from quorumlog_cli.server.properties import ConfigError


def checked_directories(paths: tuple[str, ...]) -> tuple[str, ...]:
    """At least one, none of them twice. Raises ConfigError."""
    if not paths:
        raise ConfigError("log.dirs is empty; name at least one directory")
    given: dict[str, str] = {}
    for path in paths:
        first = given.get(os.path.abspath(path))
        if first is not None:
            raise ConfigError(f"log.dirs: {path} is given twice" + ("" if first == path else f", also as {first}"))
        given[os.path.abspath(path)] = path
    return paths


def checked_cordoned(paths: tuple[str, ...], log_dirs: tuple[str, ...]) -> tuple[str, ...]:
    """All of `log_dirs` for *. Raises ConfigError for one that is none of them."""
    if paths == ("*",):
        return log_dirs
    for path in paths:
        if path not in log_dirs:
            raise ConfigError(f"cordoned.log.dirs: {path} is not in log.dirs ({', '.join(log_dirs)}); * names them all")
    return paths
