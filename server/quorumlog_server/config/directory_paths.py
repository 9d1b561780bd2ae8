"""The paths of `log.dirs`, of the keys beside it and of certificates, as a node's file may name them.

A relative path begins at the working directory of the node's process, as in Kafka. In a file that says
`paths.relative.to=file` it begins at the folder of the file, so that a folder with file and data can be moved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from quorumlog.settings.key import parse_list
from quorumlog.settings.node import RELATIVE_TO, TO_FILE, TO_PROCESS
from quorumlog.settings.node_auth import DENIED
from quorumlog.settings.process import CUT_LINKS
from quorumlog.settings.security import DENIED_CERTIFICATES, LISTENER_PREFIX
from quorumlog_server.config.properties import ConfigError

_PATHS = ("log.dirs", "log.dir", "metadata.log.dir", "cordoned.log.dirs")
_FILES = ("ssl.keystore.location", "ssl.truststore.location")  # of all listeners, or of one
_OTHERS = (DENIED, DENIED_CERTIFICATES, CUT_LINKS)


def anchored(path: str, values: Mapping[str, str]) -> dict[str, str]:
    """The keys of the file `path` with absolute paths, if it says that they begin at its folder. Raises ConfigError."""
    base = values.get(RELATIVE_TO, TO_PROCESS).strip()
    if base not in (TO_FILE, TO_PROCESS):
        raise ConfigError(f"{path}: {RELATIVE_TO}={base}: must be {TO_FILE} or {TO_PROCESS}")
    if base == TO_PROCESS:
        return dict(values)
    folder = os.path.dirname(os.path.abspath(path))
    if "," in folder:
        raise ConfigError(f"{path}: {RELATIVE_TO}={TO_FILE}, but its folder has a comma, which log.dirs cannot hold")
    return {key: _anchored(folder, key, value) for key, value in values.items()}


def _anchored(folder: str, key: str, value: str) -> str:
    if key in _PATHS:
        return _from(folder, value)
    is_file = key in (*_FILES, *_OTHERS) or (key.startswith(LISTENER_PREFIX) and key.endswith(_FILES))
    return os.path.join(folder, value.strip()) if is_file and value.strip() else value


def _from(folder: str, paths: str) -> str:
    return ",".join(path if path == "*" else os.path.join(folder, path) for path in parse_list(paths))


def check_only_in_file(values: Mapping[str, str], where: str) -> None:
    """Raises ConfigError for a base of paths that comes from elsewhere: it could not say from where."""
    if RELATIVE_TO in values:
        raise ConfigError(f"{where}: {RELATIVE_TO} has a meaning in a file only, for the paths in it")


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
