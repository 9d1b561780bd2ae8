"""A dashboard in Grafana's JSON, as its import and its provisioning take it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quorumlog_server.metrics.controller import ACTIVE
from quorumlog_server.monitoring.dashboards import OF_JOB, Dashboard, Panel

SCHEMA_VERSION = 41  # of Grafana 12; older ones are raised when they are opened, newer ones are refused
COLUMNS = 24  # of Grafana's grid
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT = 8, 8  # of a course in time
WIDTH_OF_ONE, HEIGHT_OF_ONE = 3, 4  # of one number


def document_of(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": f"quorumlog-{dashboard.name}",
        "title": f"quorumlog: {dashboard.title}",
        "tags": ["quorumlog"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [_links()],
        "templating": {"list": _variables()},
        "panels": list(_panels(dashboard)),
    }


def _links() -> dict[str, Any]:
    """From one of our dashboards to the others, for the same cluster and time."""
    return {
        "type": "dashboards",
        "title": "quorumlog",
        "tags": ["quorumlog"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
    }


def _variables() -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1}
    return [
        source,
        _values("job", "Cluster", f"label_values({ACTIVE.full_name}, job)"),
        _values("instance", "Nodes", f"label_values({ACTIVE.full_name}{{{OF_JOB}}}, instance)")
        | {"multi": True, "includeAll": True, "current": {"text": "All", "value": "$__all"}},
    ]


def _values(name: str, label: str, query: str) -> dict[str, Any]:
    """They are asked for anew whenever the time changes."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
    }


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    """Row for row, each panel at its place; ids count from 1."""
    top, number = 0, 0
    for title, panels in dashboard.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1},
        }
        top, left, lowest = top + 1, 0, 0
        for panel in panels:
            width, height = (WIDTH, HEIGHT) if panel.good is None else (WIDTH_OF_ONE, HEIGHT_OF_ONE)
            if left + width > COLUMNS:
                top, left, lowest = top + lowest, 0, 0
            number += 1
            yield _panel(panel, number) | {"gridPos": {"x": left, "y": top, "w": width, "h": height}}
            left, lowest = left + width, max(lowest, height)
        top += lowest


def _panel(panel: Panel, number: int) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": one.expression,
            "legendFormat": one.legend,
            "range": panel.good is None,
            "instant": panel.good is not None,
        }
        for index, one in enumerate(panel.queries)
    ]
    common = {
        "id": number,
        "title": panel.title,
        "description": panel.says,
        "datasource": SOURCE,
        "targets": targets,
    }
    return common | (_course(panel) if panel.good is None else _one_number(panel.good))


def _course(panel: Panel) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "fieldConfig": {
            "defaults": {
                **({"unit": panel.unit} if panel.unit else {}),
                "custom": {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 5, "showPoints": "never"},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _one_number(good: float) -> dict[str, Any]:
    """Green at the good value, red above and below it, which is red, too, where nothing is known."""
    steps: list[dict[str, Any]] = [
        {"color": "red", "value": None},
        {"color": "green", "value": good},
        {"color": "red", "value": good + 1},
    ]
    return {
        "type": "stat",
        "fieldConfig": {"defaults": {"thresholds": {"mode": "absolute", "steps": steps}}, "overrides": []},
        "options": {"colorMode": "background", "graphMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}},
    }
