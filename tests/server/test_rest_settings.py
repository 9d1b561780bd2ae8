"""How far a node slows down at rest, and that a key which the file sets is kept."""

from __future__ import annotations

import pytest

from quorumlog_server.config import idle_intervals as rest
from quorumlog_server.config.config import NodeConfig, from_values

NODE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:9093",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "/data",
}


def config(**values: str) -> NodeConfig:
    return from_values({**NODE, **{key.replace("_", "."): value for key, value in values.items()}})


CASES = [
    ("the defaults", {}, (2_000, 4_000, 5_000)),
    ("a short session", {"broker.session.timeout.ms": "2400"}, (800, 4_000, 5_000)),
    ("a very short session", {"broker.session.timeout.ms": "900"}, (500, 4_000, 5_000)),
    ("a short lag", {"replica.lag.time.max.ms": "3000"}, (2_000, 750, 5_000)),
    (
        "set",
        {
            "broker.heartbeat.interval.ms": "300",
            "replica.fetch.wait.max.ms": "500",
            "metadata.max.idle.interval.ms": "500",
        },
        (300, 500, 500),
    ),
    ("no NoOps", {"metadata.max.idle.interval.ms": "0"}, (2_000, 4_000, 0)),
]


@pytest.mark.parametrize(("values", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_intervals_at_rest(values: dict[str, str], want: tuple[int, int, int]) -> None:
    found = config(**values)
    assert (rest.heartbeats_ms(found), rest.fetch_waits_ms(found), rest.no_ops_ms(found)) == want
    session_ms, usual_ms = found.lifecycle.session_timeout_ms, found.lifecycle.heartbeat_interval_ms
    assert rest.heartbeats_ms(found) <= max(usual_ms, session_ms // 3)
    assert rest.fetch_waits_ms(found) * 2 <= found.replication.replica_lag_time_max_ms
