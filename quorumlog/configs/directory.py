"""Settings of a broker's log directories that can be changed while brokers run.

They are set for one broker, never for all: they name paths of its `log.dirs` (KIP-1066; so is it in Kafka's
`DynamicBrokerConfig.PerBrokerConfigs`). Stored under the names of a broker's file (`quorumlog_server/config/keys.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quorumlog.configs.topic import ConfigKey, Kind, words
from quorumlog.errors import ApiError, ErrorCode

CORDONED = "cordoned.log.dirs"
ALL = "*"

_KEYS = (
    ConfigKey(
        name=CORDONED, kind=Kind.LIST, default="",
        doc="Those of `log.dirs`, or * for all, that get new partitions only where no other directory is online.",
    ),
)  # fmt: skip
DIRECTORY_SETTINGS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


def cordoned_paths(text: str, log_dirs: Collection[str]) -> frozenset[str]:
    """The directories that a value names. Raises ApiError(INVALID_CONFIG) for one that is not in `log_dirs`."""
    named = frozenset(words(text))
    if named == {ALL}:
        return frozenset(log_dirs)
    for path in sorted(named - frozenset(log_dirs)):
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{CORDONED}: {path} is not in log.dirs ({', '.join(log_dirs)}); {ALL} names them all",
        )
    return named
