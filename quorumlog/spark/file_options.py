"""Options of `readFrom=files`: which log directories are read in place of a cluster, and how far."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from quorumlog.client.errors import ConfigError

FROM_FILES = "files"
READ_FROM = ("leader", FROM_FILES)  # the first word of a table is the default
LOG_END = "logEnd"
READ_UP_TO = ("highWatermark", LOG_END)

_OF_CLUSTERS = (
    "transport", "prefetch", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "keepConnectionsFor",
)  # fmt: skip
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)(?:://|:(?=/))(.*)")


def parse_files(own: Mapping[str, str], client: Mapping[str, Any]) -> tuple[str, ...]:
    """Absolute paths, each once. own, client: the options, as `options` sorts them. Raises ConfigError."""
    of_cluster = [name for name in _OF_CLUSTERS if name in own] + [name.replace("_", ".") for name in client]
    if of_cluster:
        raise ConfigError(
            f"option {of_cluster[0]!r} has no meaning with readFrom=files, which asks no broker: leave it out, or "
            "leave readFrom out"
        )
    found = [*_paths("path", own.get("path", "")), *_paths("paths", own.get("paths", ""))]
    if not found:
        raise ConfigError('readFrom=files needs a log directory: .option("path", "/mnt/logs"), or "/mnt/a,/mnt/b"')
    return tuple(dict.fromkeys(os.path.abspath(_local(path)) for path in found))


def _paths(option: str, text: str) -> list[str]:
    """Separated by commas, or as a JSON list, which is also what Spark makes of load(["/a", "/b"])."""
    if not text.strip().startswith("["):
        return [path.strip() for path in text.split(",") if path.strip()]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text!r} is no JSON list of directories: {error}") from error
    if not all(isinstance(path, str) and path for path in found):
        raise ConfigError(f"{option} must list names of directories: {text!r}")
    return list(found)


def _local(path: str) -> str:
    scheme = _SCHEME.fullmatch(path)
    if scheme is None:
        return path
    if scheme[1].lower() == "file":
        return scheme[2]
    raise ConfigError(f"path {path!r}: readFrom=files reads local and mounted directories; mount it, or copy it first")
