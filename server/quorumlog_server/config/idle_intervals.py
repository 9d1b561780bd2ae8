"""How far a node slows down at rest. A key that the file sets is kept as it is: what it sets never rests.

| what | usually (the key) | at rest, at most | must stay below |
|---|---|---|---|
| heartbeats | 500 ms (broker.heartbeat.interval.ms) | 2,000 ms, a third of the session | the session |
| waits of followers' fetches | 500 ms (replica.fetch.wait.max.ms) | 4,000 ms, a quarter of the lag | the lag |
| NoOp records | 500 ms (metadata.max.idle.interval.ms) | 5,000 ms, if all brokers rest | nothing waits for one |

The session is broker.session.timeout.ms, the lag replica.lag.time.max.ms. The metadata log's recovery point is noted
by the first sync after log.flush.offset.checkpoint.interval.ms, so at rest by up to 5,000 ms later.

The fetches of the quorum do not rest: a voter without an answer for controller.quorum.fetch.timeout.ms stands for
election, and half of that time is what a busy machine may need.
"""

from __future__ import annotations

from quorumlog.settings.replicas import FETCH_REST_LAG_PART, FETCH_REST_MAX_MS_DEFAULT
from quorumlog_server.config.config import NodeConfig

HEARTBEAT_REST_MAX_MS = 2_000  # what Kafka's brokers always take
HEARTBEATS_PER_SESSION = 3
NO_OP_REST_MAX_MS = 5_000


def heartbeats_ms(config: NodeConfig) -> int:
    """Between two heartbeats."""
    longest_ms = min(HEARTBEAT_REST_MAX_MS, config.lifecycle.session_timeout_ms // HEARTBEATS_PER_SESSION)
    return _unless_set(config, "broker.heartbeat.interval.ms", config.lifecycle.heartbeat_interval_ms, longest_ms)


def fetch_waits_ms(config: NodeConfig) -> int:
    """The longest wait of a follower's fetch."""
    longest_ms = min(FETCH_REST_MAX_MS_DEFAULT, config.replication.replica_lag_time_max_ms // FETCH_REST_LAG_PART)
    return _unless_set(config, "replica.fetch.wait.max.ms", config.replication.fetch_wait_max_ms, longest_ms)


def no_ops_ms(config: NodeConfig) -> int:
    """The longest time without a record in the metadata log."""
    key = "metadata.max.idle.interval.ms"
    return _unless_set(config, key, config.controller.metadata_max_idle_interval_ms, NO_OP_REST_MAX_MS)


def _unless_set(config: NodeConfig, key: str, usual_ms: int, longest_ms: int) -> int:
    return usual_ms if key in config.given else max(usual_ms, longest_ms)
