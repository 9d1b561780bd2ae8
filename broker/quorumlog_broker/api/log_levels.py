"""Levels of this process's loggers while it runs: Kafka's resource BROKER_LOGGER, so that its tools set them.

A logger's name is a module of quorumlog or of a library, or a package of them; `root` is above all, and begins with
`log.level`. Nothing is stored: a restart takes the levels of the file again, as in Kafka. A level that is not set is
that of the package around it. The words are Kafka's; TRACE shows no more than DEBUG, as nothing here logs below it.

Source: Kafka's `RuntimeLoggerManager` and `ConfigHelper`, whose checks, codes, texts and order these are, but for an
operation without a name: Kafka has no answer to that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource
from quorumlog.messages.cluster import DescribedConfig

SOURCE = 6  # Kafka's number of where they come from
ROOT = "root"
LEVELS: Mapping[str, int] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_SET, _DELETE = 0, 1  # operations
_REFUSED = {2: "APPEND", 3: "SUBTRACT"}

_log = logging.getLogger(__name__)


def describe(resource_name: str, node_id: NodeId) -> Iterable[DescribedConfig]:
    """Of all loggers that there are. Raises ApiError(INVALID_REQUEST)."""
    if not resource_name:
        raise _invalid("Broker id must not be empty")
    if not _is_number(resource_name):
        raise _invalid(f"Broker id must be an integer, but it is: {resource_name}")
    if int(resource_name) != node_id:
        raise _invalid(f"Unexpected broker id, expected {node_id} but received {resource_name}")
    return [DescribedConfig(name=name, value=level_of(name), source=SOURCE) for name in names()]


def names() -> list[str]:
    return [ROOT, *sorted(logging.root.manager.loggerDict)]


def level_of(name: str) -> str:
    """The one in force, in Kafka's words."""
    effective = _logger(name).getEffectiveLevel()
    return next((word for word, level in LEVELS.items() if effective <= level), "FATAL")


def alter(asked: AlterConfigsResource, node_id: NodeId, *, validate_only: bool) -> None:
    """All of it or, where something of it is wrong, nothing. Raises ApiError."""
    if asked.replace:
        raise _invalid("levels of loggers are set one by one: use IncrementalAlterConfigs")
    if not _is_number(asked.resource_name):
        raise _invalid(f"Node id must be an integer, but it is: {asked.resource_name}")
    if int(asked.resource_name) != node_id:
        raise _invalid(f"Unexpected node id. Expected {node_id}, but received {asked.resource_name}")
    if len({change.name for change in asked.configs}) < len(asked.configs):
        raise _invalid("Error due to duplicate config keys")
    for change in asked.configs:
        _check(change)
    if validate_only:
        return
    for change in asked.configs:
        level = logging.NOTSET if change.operation == _DELETE else LEVELS[change.value or ""]
        _logger(change.name).setLevel(level)
        _log.warning("the level of %s is %s now", change.name, level_of(change.name))


def _check(change: AlterableConfig) -> None:
    """Raises ApiError."""
    if change.operation in _REFUSED:
        raise _invalid(f"{_REFUSED[change.operation]} operation is not allowed for the BROKER_LOGGER resource")
    if change.operation not in (_SET, _DELETE):
        raise _invalid(f"Unknown operation type {change.operation} is not allowed for the BROKER_LOGGER resource")
    if change.operation == _SET and change.value is None:
        raise _invalid(f"Null value not supported for : {change.name}")
    if change.name != ROOT and change.name not in logging.root.manager.loggerDict:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.operation == _SET and change.value not in LEVELS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )
    if change.operation == _DELETE and change.name == ROOT:
        raise _invalid("Removing the log level of the root logger is not allowed")


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _is_number(text: str) -> bool:
    return text.isascii() and text[text[:1] in ("+", "-") :].isdigit()


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
