"""What tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty one, in which a page's commands may make a cluster; it is stopped at the end."""
    yield tmp_path
    if has_cluster(tmp_path / ".quorumlog"):
        LocalNodes.open(tmp_path / ".quorumlog").stop(timeout_s=0)
