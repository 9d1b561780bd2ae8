"""What a run leaves in its folder: `report.json`, the driver's log, and what its processes have told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jepsen.pipeline.places import EVENTS, Folder
from jepsen.pipeline.spark_processes import LOG

REPORT = "report.json"
KEPT_BYTES = 2_000_000  # of each file, its end


def keep(run: Folder, report: Path) -> None:
    report.mkdir(parents=True, exist_ok=True)
    for name in (EVENTS, LOG):
        file = run.path / name
        if file.exists():
            (report / name).write_bytes(file.read_bytes()[-KEPT_BYTES:])


def write_facts(report: Path, facts: Mapping[str, Any]) -> None:
    report.mkdir(parents=True, exist_ok=True)
    (report / REPORT).write_text(json.dumps(facts, indent=1) + "\n")
