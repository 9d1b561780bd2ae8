"""A configuration of Prometheus that scrapes the nodes of a cluster and loads the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog_server.monitoring import alerts
from quorumlog_server.monitoring.yaml_text import Node, yaml_of

FILE = "prometheus.yml"
INTERVAL = "10s"  # of scrapes and of rules, whose windows need two of them in 30 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A node's HTTP port. host: without brackets."""

    node_id: int
    host: str
    port: int
    tls: bool = False

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def scrape_file(targets: Sequence[Target], *, job: str, missing: Sequence[str] = ()) -> str:
    """job: one of Prometheus' for each cluster: rules and dashboards tell clusters apart by it. missing: a sentence for
    each node that is not scraped, which says why."""
    comments = ["Written by `quorumlog generate alerts --prometheus`.", *missing]
    scrapes: list[Node] = [
        _scrape(job, [one for one in targets if one.tls is tls], tls=tls)
        for tls in (False, True)
        if any(one.tls is tls for one in targets)
    ]
    config: dict[str, Node] = {
        "global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL},
        "rule_files": [alerts.FILE],
        "scrape_configs": scrapes,
    }
    if any(one.tls for one in targets):
        comments.append(
            "Over TLS: ca.pem has the authority of the nodes' certificates; the user of basic_auth needs Describe of "
            "the cluster (quorumlog acl create cluster --allow User:prometheus -O describe)."
        )
    return yaml_of(config, *comments)


def _scrape(job: str, targets: Sequence[Target], *, tls: bool) -> dict[str, Node]:
    """Prometheus takes a job_name once, so the second gets the cluster's by its label."""
    found: dict[str, Node] = {"job_name": f"{job}-tls" if tls else job}
    if tls:
        found |= {
            "scheme": "https",
            "tls_config": {"ca_file": "ca.pem"},
            "basic_auth": {"username": "prometheus", "password_file": "prometheus.password"},
        }
    # Not a label `node` as well: a series has one of that name.
    return found | {"static_configs": [{"targets": [one.address for one in targets], "labels": {"job": job}}]}
