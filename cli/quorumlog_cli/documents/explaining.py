"""What `explain`, `check`, `diagnose` and `generate` print."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from quorumlog_cli.documents.schema import Opaque, has_more


class Evidence(TypedDict):
    text: str
    source: str
    at_ms: int
    metadata_offset: NotRequired[int]
    record: NotRequired[str]


class Finding(TypedDict):
    cause: str
    subject: str
    severity: str
    state: str
    why: list[Evidence]
    next: str
    do: str


class Explanation(TypedDict):
    """unknown: what could not be read, and why."""

    subject: str
    state: str
    read: list[Evidence]
    findings: list[Finding]
    unknown: dict[str, str]


class Figures(TypedDict):
    findings: int
    partitions: int
    offline: int
    under_replicated: int
    brokers_fenced: int
    groups: int
    lag: int
    least_free_percent: NotRequired[int]


class Checked(TypedDict):
    """code: as the process exits, by Nagios' rules."""

    area: str
    status: str
    code: int
    looked_at: list[str]
    unknown: dict[str, str]
    figures: Figures
    findings: list[Finding]


class Diagnosed(TypedDict):
    file: str
    bytes: int
    parts: list[str]
    missing: Annotated[dict[str, str], "why, by part"]


@has_more("Grafana's own form of a dashboard")
class Dashboard(TypedDict):
    uid: str
    title: str
    panels: list[Annotated[Any, Opaque("Grafana's own form of a panel")]]


class Written(TypedDict):
    """With --to."""

    written: Annotated[list[str], "paths"]


class AlertRule(TypedDict):
    name: str
    expression: str
    for_ms: int
    severity: str
    says: str
    do: str
    causes: list[str]


class ScrapedNode(TypedDict):
    node_id: int
    address: str
    tls: bool


class Scraping(TypedDict):
    """With --prometheus."""

    job: str
    nodes: list[ScrapedNode]
    missing: list[str]
