"""Compares what a live scrape shows with the catalogue of series, both ways."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from quorumlog_server.metrics.catalogue import CATALOGUE
from quorumlog_server.metrics.series import Series

SHOWN_WHEN = {
    "dir_opening_seconds": "while a directory does not answer the start",
    "cleaner_look_age_seconds": "once the cleaner has looked",
    "cleaner_max_dirty_ratio": "once the cleaner has looked",
    "cleaner_max_compaction_delay_seconds": "once the cleaner has looked",
    "snapshot_end_offset": "once there is a snapshot",
    "snapshot_bytes": "once there is a snapshot",
    "snapshot_age_seconds": "once there is a snapshot",
    "partition_bytes_in_total": "with metrics.detail=high",
    "partition_bytes_out_total": "with metrics.detail=high",
    "partition_records_in_total": "with metrics.detail=high",
    "bytes_in_total": "once there is a topic",
    "bytes_out_total": "once there is a topic",
    "records_in_total": "once there is a topic",
    "raft_follower_lag": "on a leader that others fetch from",
    "group_lag": "where groups have committed, from the second scrape on",
    "group_lag_seconds": "where groups have committed, from the second scrape on",
    "logs_to_recover": "while logs are opened",
    "segments_to_recover": "while logs are opened",
    "bytes_to_recover": "while logs are opened",
    "authentications_total": "where there are logins",
    "client_versions": "once a client has said it",
    "connections": "once a client has come",
    "connections_created_total": "once a client has come",
    "connections_closed_total": "once a client has come",
    "strangers_refused_total": "once a peer was refused",
    "acls": "where an authorizer is on",
    "acl_generation": "where an authorizer is on",
    "authorizations_total": "where an authorizer is on",
    "quota_use_ratio": "where clients have quotas",
    "tls_expiry_seconds": "where a listener has TLS",
    "tls_reload_failures_total": "where a listener has TLS",
    "tls_certificate_refused": "where a listener has TLS",
}
"""Series that a healthy node in clear need not have, by name."""


def differences(page: str) -> list[str]:
    """A text for each series that is on the page and not in the catalogue, or in it and never shown."""
    shown, known = set(), {_family(series): series for series in CATALOGUE}
    unknown = []
    for family in text_string_to_metric_families(page):
        series = known.get(family.name)
        if series is None:
            unknown.append(f"{family.name} is not in the catalogue")
            continue
        if family.samples:
            shown.add(series.name)
        for sample in family.samples:
            labels = tuple(one for one in sample.labels if one not in ("le", "overflow"))
            if labels != series.labels:
                unknown.append(f"{sample.name} has the labels {labels}")
    silent = [name for one in CATALOGUE if (name := one.name) not in shown and name not in SHOWN_WHEN]
    return unknown + [f"{name} is in the catalogue and not on the page" for name in silent]


def _family(series: Series) -> str:
    """As the parser names it."""
    return series.full_name.removesuffix("_total")
