"""Connections of clients, their logins, and the certificates of listeners."""

from __future__ import annotations

from collections import Counter
from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Rest, Series

_SOCKETS = "kafka.server:type=socket-server-metrics: "


def _total(name: str, labels: tuple[str, ...], asks: str, mbean: str = "", unit: str = "") -> Series:
    return Series(f"{name}_total", Kind.COUNTER, unit, labels, asks, f"{_SOCKETS}{mbean}" if mbean else "")


CONNECTIONS = Series(
    "connections",
    Kind.GAUGE,
    "",
    ("listener",),
    "How many connections are open? Those of gRPC are not known.",
    f"{_SOCKETS}connection-count",
)
CREATED = _total("connections_created", ("listener",), "How many were let in?", "connection-creation-total")
CLOSED = _total("connections_closed", ("listener",), "How many of these have ended?", "connection-close-total")
REAUTHENTICATIONS = _total(
    "reauthentications", (), "How many sessions were renewed by a login?", "successful-reauthentication-total"
)
EXPIRED = _total(
    "expired_connections_killed",
    (),
    "How many connections ended with their session?",
    "expired-connections-killed-count",
)
REFUSED = _total(
    "strangers_refused", ("why",), "How many peers did not get as far as a login? A probe, which says nothing, is none."
)
PROBES = _total(
    "probes", (), "How many connections were opened and closed without a byte? Those of gRPC are not known."
)
HANDSHAKES = Series(
    "tls_handshake_seconds",
    Kind.HISTOGRAM,
    "seconds",
    (),
    "How long do TLS handshakes take, the peer's part with them?",
    buckets="handshake",
)
VERSIONS = Series(
    "client_versions",
    Kind.GAUGE,
    "",
    ("software", "version"),
    "With which software do clients connect? Open connections of clients that are known.",
    f"{_SOCKETS}connections, clientSoftwareName=, clientSoftwareVersion=",
)
UNAUTHENTICATED = Series(
    "unauthenticated_connections", Kind.GAUGE, "", (), "How many connections are not logged in (yet)?"
)
AUTHENTICATIONS = Series(
    "authentications_total",
    Kind.COUNTER,
    "",
    ("mechanism", "result"),
    "How many logins succeed and fail? Of gRPC, each call counts.",
    f"{_SOCKETS}successful-authentication-total, failed-authentication-total",
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
TLS_TROUBLE = Series(
    "tls_certificate_refused",
    Kind.GAUGE,
    "",
    ("listener",),
    "Is there a certificate in a listener's files that the node does not take?",
)

SERIES: Final = (
    CONNECTIONS, CREATED, CLOSED, UNAUTHENTICATED, AUTHENTICATIONS, REAUTHENTICATIONS, EXPIRED, REFUSED, PROBES,
    HANDSHAKES, TLS_EXPIRY, TLS_RELOAD_FAILURES, TLS_TROUBLE, VERSIONS,
)  # fmt: skip
_NO_ONE_REFUSED = ("handshakes", "probes", "expired", "logins")  # what else is told of strangers


def collect(source: Source, out: Reading) -> None:
    edges = source.node.edges
    counts = edges.connections
    for name, one in out.each(counts.listeners.items()):
        out.add(CONNECTIONS, one.open, name)
        out.add(CREATED, one.created, name)
        out.add(CLOSED, one.closed, name)
    for (software, version), count in out.each(counts.software.items()):
        out.add(VERSIONS, count, software, version)
    out.add(REAUTHENTICATIONS, counts.reauthentications)
    told = Counter(counts.strangers)
    told.update(edges.logins.strangers_told())
    out.add(EXPIRED, told["expired"])
    out.add(PROBES, told["probes"])
    for why, count in out.each(told.items()):
        if why not in _NO_ONE_REFUSED:
            out.add(REFUSED, count, why)
    out.add_histogram(HANDSHAKES, counts.handshakes)
    out.add(UNAUTHENTICATED, edges.logins.strangers())
    for (mechanism, failed), count in out.each(edges.logins.counts.items()):
        out.add(AUTHENTICATIONS, count, mechanism or "none", "failed" if failed else "done")
    for name, certificates in out.each(edges.listener_keys.by_listener.items()):
        ends_ms = certificates.generation.material.not_after_ms
        if ends_ms is not None:
            out.add(TLS_EXPIRY, (ends_ms - source.wall_ms) / 1000, name)
        out.add(TLS_RELOAD_FAILURES, certificates.failures, name)
        out.add(TLS_TROUBLE, certificates.trouble is not None, name)
