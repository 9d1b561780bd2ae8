"""The file of rules that Prometheus loads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quorumlog_server.monitoring.rules import Rule, duration
from quorumlog_server.monitoring.yaml_text import Node, yaml_of

FILE = "quorumlog-alerts.yml"
PAGE = "docs/metrics.md, Alerts"


def alerts_file(rules: Iterable[Rule]) -> str:
    """In YAML, for `rule_files` of Prometheus."""
    group: dict[str, Node] = {"name": "quorumlog", "rules": [_rule(one) for one in rules]}
    return yaml_of({"groups": [group]}, "Written by `quorumlog generate alerts`.", f"{PAGE}, tells of each rule.")


def _rule(rule: Rule) -> dict[str, Node]:
    annotations = {"summary": rule.says, "do": rule.do}
    if rule.causes:
        annotations["causes"] = " ".join(rule.causes)
    return {
        "alert": rule.name,
        "expr": rule.expression,
        **({"for": duration(rule.for_ms)} if rule.for_ms else {}),
        "labels": {"severity": rule.severity.value},
        "annotations": annotations,
    }


def document_of(rule: Rule) -> dict[str, Any]:
    """For programs."""
    return {
        "name": rule.name,
        "expression": rule.expression,
        "for_ms": rule.for_ms,
        "severity": rule.severity.value,
        "says": rule.says,
        "do": rule.do,
        "causes": list(rule.causes),
    }
