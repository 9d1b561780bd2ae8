"""Settings of single groups of the consumer protocol: Kafka's names (resource type GROUP of the admin calls).

A group has them by its name, whether or not it exists yet. Which values a broker takes is a matter of its file
(`group.consumer.min.*` and `group.consumer.max.*`): it refuses others when it is asked to set them, and keeps to its
limits where metadata has others. Source: Kafka's `GroupConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.config_key import ConfigKey, Kind, parse_text
from quorumlog.settings.groups import ConsumerGroupConfig, ConsumerSettings
from quorumlog.settings.types import MAX_INT

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

_DEFAULTS = ConsumerGroupConfig().settings
_KEYS = (
    ConfigKey(
        name=ASSIGNMENT_INTERVAL, kind=Kind.WHOLE, default=str(_DEFAULTS.assignment_interval_ms), maximum=MAX_INT,
        doc="Least time between two assignments of the group.",
    ),
    ConfigKey(
        name=HEARTBEAT_INTERVAL, kind=Kind.WHOLE, default=str(_DEFAULTS.heartbeat_interval_ms),
        minimum=1, maximum=MAX_INT, doc="Time between the heartbeats of a member of the group.",
    ),
    ConfigKey(
        name=SESSION_TIMEOUT, kind=Kind.WHOLE, default=str(_DEFAULTS.session_timeout_ms),
        minimum=1, maximum=MAX_INT, doc="A member of the group is out after such a silence.",
    ),
)  # fmt: skip
GROUP_SETTINGS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


def in_file(config: ConsumerGroupConfig) -> dict[str, str]:
    """What a broker's file says of every group, by the names of settings of a group."""
    session, heartbeat, interval = config.settings
    values = {SESSION_TIMEOUT: session, HEARTBEAT_INTERVAL: heartbeat, ASSIGNMENT_INTERVAL: interval}
    return {name: str(value) for name, value in values.items()}


def settings_of(config: ConsumerGroupConfig, values: Mapping[str, str]) -> ConsumerSettings:
    """values: of the group, in metadata. What is not understood is ignored: a newer controller may allow it."""
    found = dict(_numbers(config, values))
    return ConsumerSettings(*(min(max(found[name], low), high) for name, (low, high) in _limits(config).items()))


def setting_of(config: ConsumerGroupConfig, values: Mapping[str, str], name: str) -> int | None:
    """One of `settings_of`. None: the group has none of its own."""
    return settings_of(config, values)[tuple(_limits(config)).index(name)] if name in values else None


def check(config: ConsumerGroupConfig, values: Mapping[str, str]) -> None:
    """values: all that the group has. Raises ApiError(INVALID_CONFIG) where this broker's file does not allow them."""
    found = dict(_numbers(config, values))
    for name, (low, high) in _limits(config).items():
        if name in values and not low <= found[name] <= high:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"{name}={found[name]} must lie between group.{_limit(name, 'min')}={low} and "
                f"group.{_limit(name, 'max')}={high} of the broker's file",
            )
    _check_silence(found[SESSION_TIMEOUT], found[HEARTBEAT_INTERVAL])


def check_together(values: Mapping[str, str]) -> None:
    """Raises ApiError(INVALID_CONFIG) for values that contradict each other, whatever is in a broker's file."""
    if SESSION_TIMEOUT in values and HEARTBEAT_INTERVAL in values:
        _check_silence(int(values[SESSION_TIMEOUT]), int(values[HEARTBEAT_INTERVAL]))


def _check_silence(session: int, heartbeat: int) -> None:
    if heartbeat >= session:
        text = f"{HEARTBEAT_INTERVAL}={heartbeat} must be below {SESSION_TIMEOUT}={session}, or no member stays alive"
        raise ApiError(ErrorCode.INVALID_CONFIG, text)


def _numbers(config: ConsumerGroupConfig, values: Mapping[str, str]) -> dict[str, int]:
    found = {}
    for name, default in in_file(config).items():
        try:
            found[name] = int(parse_text(GROUP_SETTINGS[name], values.get(name, default)))
        except ApiError:
            found[name] = int(default)
    return found


def _limits(config: ConsumerGroupConfig) -> dict[str, tuple[int, int]]:
    """(lowest, highest), both inclusive, in the order of the fields of `ConsumerSettings`."""
    return {
        SESSION_TIMEOUT: (config.min_session_timeout_ms, config.max_session_timeout_ms),
        HEARTBEAT_INTERVAL: (config.min_heartbeat_interval_ms, config.max_heartbeat_interval_ms),
        ASSIGNMENT_INTERVAL: (config.min_assignment_interval_ms, config.max_assignment_interval_ms),
    }


def _limit(name: str, which: str) -> str:
    return name.replace("consumer.", f"consumer.{which}.", 1)
