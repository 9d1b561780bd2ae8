"""docs/deployment.md: it lists the files that there are, and its commands exist."""

from __future__ import annotations

import re

import pytest

from quorumlog_server.config.keys import all_keys
from tests.packages.package_files import CHART, PACKAGING, ROOT, all_files, commands_of_page, wrong_in_command

PAGE = (ROOT / "docs" / "deployment.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S)


def test_it_lists_each_file_once() -> None:
    chart = f"{CHART.relative_to(PACKAGING)}/"
    listed = re.findall(r"^\| `([^`]+)` \|", PAGE, re.M)
    listed_files = [name for name in listed if "/" in name or "." in name]
    files = {path.as_posix() for path in all_files()}
    assert sorted(listed_files) == sorted({chart if name.startswith(chart) else name for name in files})


@pytest.mark.parametrize("command", [line for block in BLOCKS for line in commands_of_page(block)], ids=" ".join)
def test_commands_in_blocks_exist(command: list[str]) -> None:
    assert wrong_in_command(command) == []


@pytest.mark.parametrize("command", [["topic", "creat", "x"], ["topic"], ["version", "--no-such"]])
def test_a_wrong_command_is_seen(command: list[str]) -> None:
    assert wrong_in_command(command) != []


def test_commands_are_found() -> None:
    found = [" ".join(command) for block in BLOCKS for command in commands_of_page(block)]
    assert "storage format -t CLUSTER_ID -c /etc/quorumlog/server.properties" in found
    assert "storage random-uuid" in found


def test_files_and_keys_that_it_names_exist() -> None:
    for name in re.findall(r"\bpackaging/[\w./-]+", PAGE):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"\btests/[\w/]+(?:\.\w+)*", PAGE):
        assert (ROOT / name).exists(), name
    keys = set(re.findall(r"`(log\.\w+(?:\.\w+)*|queued\.[\w.]+)(?:=[^`]*)?`", PAGE))
    assert len(keys) >= 3 and keys <= set(all_keys())
