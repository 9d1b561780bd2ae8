"""Blocks of shell of pages that are not followed from begin to end: index.md, certificates.md and two more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.live import page_code
from tests.live.page_code import DOCS


def commands(page: str, heading: str) -> list[str]:
    """Of all blocks below a heading of the page: lines behind `$`, or all lines of a block without any."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", (DOCS / page).read_text(), re.M | re.S)
    assert found is not None, f"{page} has no heading {heading!r}"
    lines: list[str] = []
    for language, block in re.findall(r"^```(\S*)\n(.*?)^```$", found[2], re.M | re.S):
        if language not in ("", "console"):
            continue
        typed = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
        lines += typed or block.splitlines()
    assert lines
    return lines


def run(command: str, folder: Path) -> str:
    """What it prints. It must end with 0."""
    done = page_code.run(["bash", "-o", "pipefail", "-c", command], folder)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.timeout(240)
def test_a_cluster_takes_them(folder: Path) -> None:
    said = [run(command, folder) for command in commands("index.md", "quorumlog")]
    assert said[-1] == "hi\n", said
    levels = [run(command, folder) for command in commands("operations.md", "Find what is slow")]
    assert "READY" in levels[0] and "quorumlog.broker" not in levels[-1]
    (dump,) = commands("security.md", "Who changed what")
    logs = sorted((folder / ".quorumlog").rglob("__cluster_metadata-0"))
    changed = run(dump.replace("/var/lib/quorumlog", str(logs[0].parent)), folder)
    assert re.search(r"TopicRecord .*\n(.*\n)*?.*ChangedByRecord +by User:ANONYMOUS@127\.0\.0\.1", changed)


def test_the_first_certificates(folder: Path) -> None:
    (init,) = commands("certificates.md", "The first ones")
    said = run(init, folder).splitlines()
    page = (DOCS / "certificates.md").read_text().partition(f"$ {init}\n")[2].partition("\n```")[0].splitlines()
    assert [line.split()[0] for line in said] == [line.split()[0] for line in page]
    assert all((folder / "certs" / line.split()[0]).is_file() for line in said[1:])
