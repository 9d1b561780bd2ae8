"""Rights and quotas."""

from __future__ import annotations

from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Series

SERIES: Final[tuple[Series, ...]] = ()


def collect(source: Source, out: Reading) -> None:
    pass
