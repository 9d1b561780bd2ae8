"""docs/schemas.md, followed as it stands there, with a registry that the test brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.page_code import DOCS, follow
from tests.schemas.http_registry import HttpRegistry, serving

WRITTEN = "http://localhost:8081"  # where the page says that the registry is
START = "```console\n$ quorumlog up -d --nodes 1\n```\n"


@pytest.mark.timeout(240)
def test_every_block(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "schemas.md").read_text()
    with serving(HttpRegistry()) as http:
        monkeypatch.setenv("QUORUMLOG_SCHEMA_REGISTRY_URL", http.url)  # what a block exports ends with its shell
        said = follow(START + page.replace(WRITTEN, http.url), folder, {})
    assert "python orders.py" in said and len(http.schemas) == 1
