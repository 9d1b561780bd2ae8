"""Connections of clients, their logins, and the certificates of listeners."""

from __future__ import annotations

from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Rest, Series

UNAUTHENTICATED = Series(
    "unauthenticated_connections", Kind.GAUGE, "", (), "How many connections are not logged in (yet)?"
)
AUTHENTICATIONS = Series(
    "authentications_total",
    Kind.COUNTER,
    "",
    ("mechanism", "result"),
    "How many logins succeed and fail? Of gRPC, each call counts.",
    "kafka.server:type=socket-server-metrics: successful-authentication-total, failed-authentication-total",
)
TLS_EXPIRY = Series(
    "tls_expiry_seconds",
    Kind.GAUGE,
    "seconds",
    ("listener",),
    "When does the first certificate of a listener's chain end?",
    rest=Rest.LEAST,
)
TLS_RELOAD_FAILURES = Series(
    "tls_reload_failures_total", Kind.COUNTER, "", ("listener",), "Was a changed certificate refused?"
)

SERIES: Final = (UNAUTHENTICATED, AUTHENTICATIONS, TLS_EXPIRY, TLS_RELOAD_FAILURES)


def collect(source: Source, out: Reading) -> None:
    edges = source.node.edges
    out.add(UNAUTHENTICATED, edges.logins.strangers())
    for (mechanism, failed), count in out.each(edges.logins.counts.items()):
        out.add(AUTHENTICATIONS, count, mechanism or "none", "failed" if failed else "done")
    for name, certificates in out.each(edges.listener_keys.by_listener.items()):
        ends_ms = certificates.generation.material.not_after_ms
        if ends_ms is not None:
            out.add(TLS_EXPIRY, (ends_ms - source.wall_ms) / 1000, name)
        out.add(TLS_RELOAD_FAILURES, certificates.failures, name)
