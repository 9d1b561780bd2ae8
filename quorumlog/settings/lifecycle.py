"""Settings of a broker towards the controller, from its registration to its stop."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.config_key import MAX_LONG
from quorumlog.settings.key import flag, number, setting

_HEARTBEAT_INTERVAL_MS = 500
SESSION_TIMEOUT = number(
    "broker.session.timeout.ms", 9_000, 100, "A broker without heartbeats for this long is fenced."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """heartbeat_rest_ms: between two heartbeats at rest; the same as heartbeat_interval_ms: it never rests."""

    heartbeat_interval_ms: int = setting(
        number(
            "broker.heartbeat.interval.ms",
            _HEARTBEAT_INTERVAL_MS,
            10,
            "Interval between a broker's heartbeats to the controller.",
        )
    )
    heartbeat_rest_ms: int = _HEARTBEAT_INTERVAL_MS
    session_timeout_ms: int = setting(SESSION_TIMEOUT)  # after such a silence the controller gives its leaderships away
    registration_timeout_ms: int = setting(
        number("initial.broker.registration.timeout.ms", 60_000, 100, "How long a starting broker tries to register.")
    )
    controlled_shutdown_enable: bool = setting(
        flag("controlled.shutdown.enable", True, "Hand over leaderships before a stop.")
    )
    controlled_shutdown_timeout_ms: int = setting(
        number("controlled.shutdown.timeout.ms", 20_000, 0, "How long a stop waits for the handover. Not in Kafka.")
    )
    directory_failure_timeout_ms: int = setting(
        number(
            "log.dir.failure.timeout.ms",
            30_000,
            1,
            "A broker stops if the controller has not learned for so long that one of its log directories has failed.",
            MAX_LONG,
        )
    )
    controlled_shutdown_silence_ms: int = 2_000  # without any response for so long, stop waiting for the controller
