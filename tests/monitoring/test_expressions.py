"""Every expression of rules and dashboards names series and labels that nodes have; thresholds are those of `check`."""

from __future__ import annotations

import dataclasses
import json
import re
import string
from typing import Any

import pytest

from quorumlog.explaining.causes import CAUSES
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.histogram import BUCKETS
from quorumlog_cli.command_tree import all_commands
from quorumlog_server.metrics import controller
from quorumlog_server.metrics.catalogue import CATALOGUE
from quorumlog_server.metrics.series import Kind
from quorumlog_server.monitoring.alerts import alerts_file
from quorumlog_server.monitoring.dashboards import NAMED_BY_CLIENTS, dashboards
from quorumlog_server.monitoring.grafana import COLUMNS, document_of
from quorumlog_server.monitoring.rules import Rule, duration, rules_of
from quorumlog_server.monitoring.yaml_text import yaml_of
from tests.monitoring.promql import mistakes, names_in

RULES = rules_of(Thresholds())
DASHBOARDS = [document_of(one) for one in dashboards()]
COMMANDS = {command.path for command in all_commands() if command.path}
NOT_OF_ALERTS = {"transaction_ms", "hanging_ms", "rebalance_ms", "voter_silent_ms", "hot_bytes", "rebalances"}
"""Thresholds of causes that are seen in what no series tells."""


@pytest.mark.parametrize("rule", RULES, ids=[one.name for one in RULES])
def test_a_rule_names_only_what_nodes_show(rule: Rule) -> None:
    assert mistakes(rule.expression, CATALOGUE) == []
    for label in re.findall(r"\$labels\.(\w+)", rule.says + rule.do):
        assert label in names_in(rule.expression).labels
    assert rule.says.endswith(".") and set(rule.causes) <= {cause.name for cause in CAUSES}


@pytest.mark.parametrize("rule", RULES, ids=[one.name for one in RULES])
def test_what_to_do_is_a_command_of_ours_and_has_no_name_that_clients_choose(rule: Rule) -> None:
    """Who is called at night pastes it into a shell. A topic's name has nothing that a shell would take."""
    words = rule.do.split()
    assert words[0] == "quorumlog"
    assert any(path == tuple(words[1 : 1 + len(path)]) for path in COMMANDS)
    assert {"topic"} >= set(re.findall(r"\$labels\.(\w+)", rule.do))


@pytest.mark.parametrize("rule", RULES, ids=[one.name for one in RULES])
def test_a_limit_of_a_histogram_is_the_end_of_a_bucket(rule: Rule) -> None:
    for name, end in re.findall(r'(\w+)_bucket\{le="([^"]+)"\}', rule.expression):
        (series,) = [one for one in CATALOGUE if one.full_name == name]
        assert end in [repr(one) for one in BUCKETS[series.buckets]], f"{name} has no bucket that ends at {end}"


@pytest.mark.parametrize("name", [one.name for one in dataclasses.fields(Thresholds)])
def test_each_threshold_of_check_is_that_of_a_rule(name: str) -> None:
    now = getattr(Thresholds(), name)
    changed: Any = rules_of(dataclasses.replace(Thresholds(), **{name: now * 3}))
    assert (name in NOT_OF_ALERTS) == (changed == RULES)


def test_what_controllers_tell_is_taken_from_the_active_one() -> None:
    """A standby tells the past while it starts: partitions without a leader that have had one for long."""
    told = {one.full_name for one in (controller.OFFLINE, controller.BROKERS_FENCED)}
    found = 0
    for rule in RULES:
        for name in told & {name for name, _ in names_in(rule.expression).series}:
            assert rule.expression.count(f"{name} * on (job, instance) quorumlog_active_controller") == 1
            assert rule.expression.count(name) == 1
            found += 1
    assert found == 4


def test_each_rule_has_a_name_of_its_own() -> None:
    assert len({one.name for one in RULES}) == len(RULES)


def test_each_cause_that_asks_for_somebody_has_a_rule_or_is_seen_by_check_only() -> None:
    seen = {cause for rule in RULES for cause in rule.causes}
    assert {one.name for one in CAUSES} - seen == {
        "broker.cordoned", "broker.leaving", "broker.silent", "group.coordinator-loading", "group.no-members",
        "group.rebalances-often", "group.rebalancing", "quota.throttles", "reassignment.cannot-end",
        "reassignment.running",
    }  # fmt: skip


def _shown(dashboard: dict[str, Any]) -> list[str]:
    return [one["expr"] for panel in dashboard["panels"] for one in panel.get("targets", ())]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=[one["uid"] for one in DASHBOARDS])
def test_a_dashboard_names_only_what_nodes_show(dashboard: dict[str, Any]) -> None:
    assert [wrong for one in _shown(dashboard) for wrong in mistakes(one, CATALOGUE)] == []
    for one in _shown(dashboard):
        by = set(names_in(one).labels)
        assert ("topk(" in one or "histogram_quantile(" in one) == bool(by & {*NAMED_BY_CLIENTS, "le"})
    json.dumps(dashboard, allow_nan=False)


def test_every_series_is_in_one_dashboard_beside_the_overview() -> None:
    found: dict[str, int] = {}
    for dashboard in DASHBOARDS[1:]:
        for expression in _shown(dashboard):
            for name, _ in names_in(expression).series:
                found[name] = found.get(name, 0) + 1
    want = {
        f"{one.full_name}_bucket" if one.kind is Kind.HISTOGRAM else one.full_name: 2
        if one.kind is Kind.HISTOGRAM
        else 1
        for one in CATALOGUE
    }
    assert found == want


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=[one["uid"] for one in DASHBOARDS])
def test_no_panel_lies_on_another(dashboard: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        own = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not own & taken and at["x"] + at["w"] <= COLUMNS
        taken |= own
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("sum by (job) (quorumlog_nothing)", ["quorumlog_nothing is in no catalogue"]),
        ("sum by (dir) (quorumlog_dirs_offline)", ["no series has the label dir"]),
        ('rate(quorumlog_bytes_in_total{partition="1"}[1m])', ["quorumlog_bytes_in_total has no label partition"]),
        ("quorumlog_request_seconds", ["quorumlog_request_seconds is in no catalogue"]),
        ("average(quorumlog_acls)", ["average is no function"]),
        ("1 > 2", ["it names no series"]),
        ("max by (job, dir) (quorumlog_dir_free_bytes) > 1", []),
    ],
)
def test_mistakes_are_found(expression: str, wrong: list[str]) -> None:
    assert mistakes(expression, CATALOGUE) == wrong


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0s"), (500, "500ms"), (30_000, "30s"), (90_000, "90s"), (3_600_000, "1h"), (86_400_000, "1d")]
)
def test_durations(ms: int, text: str) -> None:
    assert duration(ms) == text


def test_yaml_is_that_of_the_document() -> None:
    yaml = pytest.importorskip("yaml")
    hard = string.printable + "é\u2028 - : # {{ $value }}"
    document = {"a": hard, "b": [{"c": "1", "d": {"e": ["yes", hard], "f": []}}, {"g": "no"}], "h": {}}
    assert yaml.safe_load(yaml_of(document, "one\n- two: 3")) == document
    read = yaml.safe_load(alerts_file(RULES))
    assert [one["expr"] for one in read["groups"][0]["rules"]] == [one.expression for one in RULES]
