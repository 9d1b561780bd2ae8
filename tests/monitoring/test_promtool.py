"""Prometheus' own tool reads the rules and plays made-up series to them: each fires for its fault and else never."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from quorumlog.explaining.thresholds import Thresholds
from quorumlog_server.monitoring import alerts, scraping
from quorumlog_server.monitoring.rules import rules_of
from quorumlog_server.monitoring.scraping import Target
from tests.monitoring.faults import BEFORE, CALM, FAULTS, JOB, STEP_S, Fault, Values, healthy, length_of

PROMTOOL = shutil.which("promtool")
NO_PROMTOOL = "it needs Prometheus' promtool (apt-get install prometheus)"
RULES = {one.name: one for one in rules_of(Thresholds())}

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason=NO_PROMTOOL)


def promtool(*words: str, folder: Path) -> str:
    """What it says; it must find nothing wrong."""
    done = subprocess.run([str(PROMTOOL), *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("rules")
    (found / alerts.FILE).write_text(alerts.alerts_file(RULES.values()))
    return found


@needs_promtool
def test_the_rules_and_the_configuration_are_read(folder: Path) -> None:
    assert f"{len(RULES)} rules found" in promtool("check", "rules", "--lint-fatal", alerts.FILE, folder=folder)
    targets = [Target(node_id=1, host="n1", port=9644), Target(node_id=2, host="::1", port=9644, tls=True)]
    (folder / "ca.pem").write_text("")
    (folder / "prometheus.password").write_text("")
    (folder / scraping.FILE).write_text(scraping.scrape_file(targets, job="c", missing=("Node 3: a\nb: c",)))
    promtool("check", "config", scraping.FILE, folder=folder)


@needs_promtool
def test_each_rule_fires_for_its_fault_and_resolves_and_is_else_silent(folder: Path) -> None:
    """Each fault has a cluster of its own, all of them in one Prometheus."""
    clusters = {f"c{number}": one for number, one in enumerate((*FAULTS, *CALM))}
    played = {
        "interval": f"{STEP_S}s",
        "input_series": [series for job, one in clusters.items() for series in _series(one, job)],
        "promql_expr_test": [look for job, one in clusters.items() for look in _looks(one, job)],
    }
    document = {"rule_files": [alerts.FILE], "evaluation_interval": f"{STEP_S}s", "tests": [played]}
    (folder / "tests.yml").write_text(json.dumps(document))  # YAML, too
    promtool("test", "rules", "tests.yml", folder=folder)


def test_each_rule_has_its_fault() -> None:
    assert {one.rule for one in FAULTS} == set(RULES) and not {one for fault in FAULTS for one in fault.also} - set(
        RULES
    )
    assert all(set(one.series) <= set(healthy()) for one in (*FAULTS, *CALM))


def _series(fault: Fault, job: str) -> list[dict[str, str]]:
    length = length_of(RULES.get(fault.rule))
    series = {**healthy(), **fault.series}
    return [{"series": name.replace(JOB, job), "values": _text(course(length))} for name, course in series.items()]


def _looks(fault: Fault, job: str) -> list[dict[str, Any]]:
    """At each time all alerts of the cluster that fire are compared."""
    rule = RULES.get(fault.rule)
    length = length_of(rule)
    end = BEFORE + length.fault
    expected = {fault.rule, *fault.also} - {""}
    times = {BEFORE - 1: set[str](), end - 1: expected, length.all - 1: set[str]()}
    if fault.within_s is not None:
        times[BEFORE + fault.within_s // STEP_S] = expected
    if rule is None:
        times |= {step: set[str]() for step in range(BEFORE, length.all, 4)}
    elif rule.for_ms > STEP_S * 1_000:
        times[BEFORE + rule.for_ms // 1_000 // STEP_S - 1] = expected - {rule.name}
    return [_look(step, job, names) for step, names in times.items()]


def _look(step: int, job: str, names: Iterable[str]) -> dict[str, Any]:
    return {
        "expr": f'group by (alertname, job) (ALERTS{{alertstate="firing", job="{job}"}})',
        "eval_time": f"{step * STEP_S}s",
        "exp_samples": [{"labels": f'{{alertname="{name}", job="{job}"}}', "value": 1} for name in sorted(names)],
    }


def _text(values: Values) -> str:
    return " ".join("stale" if value is None else repr(float(value)) for value in values)
