"""From a key's text to its value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.settings.key import NodeKey
from quorumlog_server.config.properties import ConfigError


def read_value(key: NodeKey, values: Mapping[str, str], where: str) -> Any:
    """None: an optional key that is not set. where: named in errors. Raises ConfigError."""
    text = values.get(key.name, key.default)
    if text is None:
        if key.optional:
            return None
        raise ConfigError(f"{where}: {key.name} is not set. {key.doc}")
    try:
        value = key.parse(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {key.name}: {error}") from error
    if key.minimum is not None and value < key.minimum:
        raise ConfigError(f"{where}: {key.name}={text} is below {key.minimum}")
    if key.maximum is not None and value > key.maximum:
        raise ConfigError(f"{where}: {key.name}={text} is above {key.maximum}")
    return value
