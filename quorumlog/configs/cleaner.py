"""Settings of a broker's cleaner that can be changed while brokers run (Kafka's `LogCleaner.RECONFIGURABLE_CONFIGS`).

They are set for one broker or for all of them (a `broker` resource of IncrementalAlterConfigs), and stored under the
names of a broker's file. Names, defaults and ranges are those of the file (`quorumlog_server/config/keys.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.configs.topic import MAX_INT, MAX_LONG, ConfigKey, Kind
from quorumlog.errors import ApiError, ErrorCode

THREADS = "log.cleaner.threads"
DEDUPE_BUFFER = "log.cleaner.dedupe.buffer.size"
IO_BUFFER = "log.cleaner.io.buffer.size"
LOAD_FACTOR = "log.cleaner.io.buffer.load.factor"
BYTES_PER_S = "log.cleaner.io.max.bytes.per.second"
BACKOFF = "log.cleaner.backoff.ms"

UNLIMITED = "1.7976931348623157E308"
MIN_DEDUPE_BUFFER = 1 << 20  # of each thread

_KEYS = (
    ConfigKey(
        name=THREADS, kind=Kind.WHOLE, default="1", minimum=0, maximum=MAX_INT,
        doc="Logs that are compacted at the same time, each by a process of its own.",
    ),
    ConfigKey(
        name=DEDUPE_BUFFER, kind=Kind.WHOLE, default=str(128 << 20), minimum=MIN_DEDUPE_BUFFER, maximum=MAX_LONG,
        doc="Memory for the keys of all logs that are compacted now: 24 bytes a key.",
    ),
    ConfigKey(
        name=IO_BUFFER, kind=Kind.WHOLE, default=str(512 << 10), minimum=0, maximum=MAX_INT,
        doc="Memory for reading and writing, of all compactions together.",
    ),
    ConfigKey(
        name=LOAD_FACTOR, kind=Kind.FRACTION, default="0.9", minimum=0.01, maximum=1.0,
        doc="How full the memory for keys may become.",
    ),
    ConfigKey(
        name=BYTES_PER_S, kind=Kind.FRACTION, default=UNLIMITED, minimum=1.0, maximum=float(UNLIMITED),
        doc="Most bytes that all compactions read and write in a second.",
    ),
    ConfigKey(
        name=BACKOFF, kind=Kind.WHOLE, default="15000", minimum=0, maximum=MAX_INT,
        doc="Pause when no log is due to be compacted.",
    ),
)  # fmt: skip
CLEANER_SETTINGS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


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
