"""What the operations of one request make of a resource's settings. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import AlterableConfig
from quorumlog.topic_config import TOPIC_CONFIGS, ConfigKey, Kind, validate, words

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3  # Kafka's numbers of operations


def changed_values(
    before: Mapping[str, str],
    inherited: Mapping[str, str],
    changes: Collection[AlterableConfig],
    name_of: Callable[[str], str],
    keys: Mapping[str, ConfigKey] = TOPIC_CONFIGS,
) -> dict[str, str]:
    """The resource's own values after the changes, which are still to be judged. Raises ApiError: INVALID_REQUEST;
    INVALID_CONFIG for what is no list, or not known where it is taken away.

    before: the resource's own values. inherited: the value that APPEND and SUBTRACT start from where the resource has
    none; if that is missing too, the default.
    name_of: the name under which a key is kept. keys: those that the resource may have.
    """
    after = dict(before)
    counts = Counter(name_of(change.name) for change in changes)
    for name, count in counts.items():
        if count > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} is in the request twice")
    for change in changes:
        _apply(after, inherited, name_of(change.name), change, keys)
    return after


def _apply(
    after: dict[str, str],
    inherited: Mapping[str, str],
    name: str,
    change: AlterableConfig,
    keys: Mapping[str, ConfigKey],
) -> None:
    if change.operation == DELETE:
        if name not in after:
            _require_known(name, keys)
        after.pop(name, None)
        return
    if change.operation not in (SET, APPEND, SUBTRACT):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"operation {change.operation}: must be 0, 1, 2 or 3")
    if change.value is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{change.name} needs a value; delete takes it back")
    if change.operation == SET:
        after[name] = change.value
        return
    _require_list(name, change, keys)
    now = after.get(name, inherited.get(name, keys[name].default))
    after[name] = _list_after(now, change.value, add=change.operation == APPEND)


def _require_known(name: str, keys: Mapping[str, ConfigKey]) -> None:
    if name not in keys:
        validate(name, "", keys)  # its error names the most similar key


def _require_list(name: str, change: AlterableConfig, keys: Mapping[str, ConfigKey]) -> None:
    _require_known(name, keys)
    if keys[name].kind not in (Kind.CHOICES, Kind.LIST):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{change.name} is no list: set it, or delete it")


def _list_after(now: str, named: str, *, add: bool) -> str:
    held = words(now)
    if add:
        return ",".join(dict.fromkeys([*held, *words(named)]))
    gone = words(named)
    return ",".join(word for word in held if word not in gone)
