"""Rights and quotas: what clients may, and how they are held back."""

from __future__ import annotations

from heapq import nlargest
from typing import Final

from quorumlog.security.quota.entity import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Rest, Series

MOST_USES = 100  # of quotas that are shown
_KEYS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)

ACLS = Series(
    "acls",
    Kind.GAUGE,
    "",
    (),
    "How many access rules does this node know?",
    "kafka.controller:type=Authorizer: acls-total-count",
)
GENERATION = Series("acl_generation", Kind.GAUGE, "", (), "Has this node heard of a change of the rules? It rises.")
AUTHORIZATIONS = Series(
    "authorizations_total",
    Kind.COUNTER,
    "",
    ("result",),
    "How often was a right there, and how often denied?",
    "kafka.server:type=Authorizer: authorization-allowed-rate-per-minute, authorization-denied-rate-per-minute",
)
THROTTLE = Series(
    "throttle_seconds_total",
    Kind.COUNTER,
    "seconds",
    ("type",),
    "For how long were clients held back by quotas, together?",
    "kafka.server:type=Produce, type=Fetch, type=Request: throttle-time",
)
THROTTLED = Series("throttled_connections", Kind.GAUGE, "", (), "How many connections are held back now?")
QUOTA_USE = Series(
    "quota_use_ratio",
    Kind.GAUGE,
    "",
    ("user", "client", "type"),
    f"Who uses most of its quota? 1 is all of it; the first {MOST_USES}. Empty: of all users, or clients.",
    "kafka.server:type=Produce, type=Fetch, user=, client-id=: byte-rate",
    rest=Rest.LARGEST,
)
ACCEPT_THROTTLE = Series(
    "accept_throttle_seconds_total",
    Kind.COUNTER,
    "seconds",
    (),
    "For how long did new connections wait to be let in, together?",
    "kafka.server:type=socket-server-metrics: connection-accept-throttle-time",
)

SERIES: Final = (ACLS, GENERATION, AUTHORIZATIONS, THROTTLE, THROTTLED, QUOTA_USE, ACCEPT_THROTTLE)


def collect(source: Source, out: Reading) -> None:
    node = source.node
    rules, audit = node.rules_in_force, node.audit_log
    if rules is not None:
        out.add(ACLS, len(rules.index))
        out.add(GENERATION, rules.generation)
        out.add(AUTHORIZATIONS, audit.allowed, "allowed")
        out.add(AUTHORIZATIONS, audit.refused, "denied")
    clients, connections = node.edges.quotas.clients, node.edges.connections
    for key in _KEYS:
        out.add(THROTTLE, clients.throttled_ms[key] / 1000, key)
    out.add(THROTTLED, connections.throttled)
    out.add(ACCEPT_THROTTLE, connections.held_s)
    uses = ((use.rate / use.quota, use) for use in clients.uses(source.now_ms, out.each) if use.quota)
    for ratio, use in nlargest(MOST_USES, uses, key=lambda one: one[0]):
        user, client = use.bucket
        out.add(QUOTA_USE, ratio, user or "", client or "", use.key)
