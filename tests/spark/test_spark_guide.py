"""docs/guides/spark.md as it stands: commands and scripts in their order, over real nodes and real sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes
from tests.live.page_code import DOCS, follow

PAGE = DOCS / "guides" / "spark.md"


@pytest.mark.timeout(480)
def test_every_block(tmp_path: Path) -> None:
    try:
        said = follow(PAGE.read_text(), tmp_path, {})
        assert "write/nightly-report" in said["quorumlog spark sink list"]
    finally:
        if has_cluster(tmp_path / ".quorumlog"):
            LocalNodes.open(tmp_path / ".quorumlog").stop(timeout_s=0)
