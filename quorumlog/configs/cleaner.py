"""Settings of a broker's cleaner that can be changed while brokers run (Kafka's `LogCleaner.RECONFIGURABLE_CONFIGS`).

They are set for one broker or for all of them (a `broker` resource of IncrementalAlterConfigs), and stored under the
names of a broker's file, which says them (`quorumlog/settings/cleaner.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.changeable import changeable
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.config_key import ConfigKey
from quorumlog.settings.key import keys_of

PAUSED_UNTIL = "log.cleaner.paused.until.ms"  # not in Kafka
THREADS, DEDUPE_BUFFER = "log.cleaner.threads", "log.cleaner.dedupe.buffer.size"
MIN_DEDUPE_BUFFER = 1 << 20  # of each thread

CLEANER_SETTINGS: Mapping[str, ConfigKey] = {key.name: changeable(key) for key in keys_of(CleanerConfig, THREADS)}


def check_change(old: int, new: int, dedupe_buffer_bytes: int) -> None:
    """Raise ApiError(INVALID_CONFIG) for a step that is too large (Kafka's `LogCleaner.validateReconfiguration`).

    old, new: threads. They may at most double or halve, so that a slip of the hand starts no hundred processes. Kafka
    does not allow 0, which in our files switches the cleaner off; so only a file can say it.
    """
    if old != new and (new < 1 or new < old // 2 or new > old * 2):
        reach = f"between {max(1, old // 2)} and {old * 2} in one step" if old else "changed in the broker's file"
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{THREADS}={new}: there are {old} now; it must be {reach}")
    if new and dedupe_buffer_bytes // new < MIN_DEDUPE_BUFFER:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{DEDUPE_BUFFER}={dedupe_buffer_bytes} is less than 1 MiB for each of {THREADS}={new}",
        )
