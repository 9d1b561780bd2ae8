"""Settings of a broker's log directories that can be changed while brokers run.

They are set for one broker, never for all: they name paths of its `log.dirs` (KIP-1066; so is it in Kafka's
`DynamicBrokerConfig.PerBrokerConfigs`). Stored under the names of a broker's file (`quorumlog/settings/node.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.changeable import changeable
from quorumlog.settings.config_key import ConfigKey, words
from quorumlog.settings.key import key_of
from quorumlog.settings.node import DirectorySettings

CORDONED = "cordoned.log.dirs"
ALL = "*"

DIRECTORY_SETTINGS: Mapping[str, ConfigKey] = {CORDONED: changeable(key_of(DirectorySettings, CORDONED))}


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
