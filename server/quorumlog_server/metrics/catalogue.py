"""All series, by area: the order of the page and of docs/metrics.md."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from quorumlog_server.metrics import (
    connections,
    controller,
    disk,
    groups,
    process,
    quorum,
    replicas,
    requests,
    rights,
    traffic,
)
from quorumlog_server.metrics.series import Series

AREAS: Final[tuple[ModuleType, ...]] = (
    traffic, requests, connections, rights, replicas, disk, controller, quorum, groups, process,
)  # fmt: skip
"""Each has SERIES, and `collect(source, out)`, which only reads."""

CATALOGUE: Final[tuple[Series, ...]] = tuple(series for area in AREAS for series in area.SERIES)
