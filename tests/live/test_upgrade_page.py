"""The commands of docs/operations.md, run as they stand there, section by section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from tests.live.test_readme import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
TESTED = {"Upgrade"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if has_cluster(tmp_path / ".quorumlog"):
        LocalNodes.open(tmp_path / ".quorumlog").stop(timeout_s=0)


def commands(heading: str) -> list[str]:
    """Every line that begins with `$ ` in a section."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/operations.md has no section {heading!r}"
    return re.findall(r"^ *\$ (.*)$", found[1], re.MULTILINE)


def test_the_upgrade(folder: Path) -> None:
    assert run(["quorumlog", "up", "-d"], folder).returncode == 0
    said: dict[str, str] = {}
    for command in commands("Upgrade"):
        done = run(["bash", "-o", "pipefail", "-c", command], folder)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        said[command] = done.stdout + done.stderr
    assert len(said) == 8
    assert "metadata.version" in said["quorumlog feature describe"]
    assert "already" in said["quorumlog feature upgrade --latest"], "a new cluster is at the latest level"
    lowered = said["quorumlog feature downgrade metadata.version=3 --dry-run"]
    assert f"could go from level {LATEST_LEVEL} to 3" in lowered
