"""docs/tutorial.md from its first command to its last, in an empty folder, with the output that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.testing.layout import has_cluster
from tests.live.page_code import DOCS, Step, blocks, follow, shown, steps

PAGE = (DOCS / "tutorial.md").read_text()
UNHEALTHY = 5
CODES = {"quorumlog status": UNHEALTHY, "quorumlog explain broker 2": UNHEALTHY}  # of a cluster without its node 2


@pytest.mark.timeout(480)  # 40 s on a quiet machine
def test_every_block(folder: Path) -> None:
    said = follow(PAGE, folder, CODES)
    assert "broker 2 is FENCED" in said["quorumlog explain broker 2"]
    assert not has_cluster(folder / ".quorumlog"), "the last command has deleted it"


def test_every_block_is_of_a_kind_that_is_run() -> None:
    assert [one.text for one in blocks(PAGE) if one.language != "console" and not one.file] == []


@pytest.mark.parametrize(
    ("shows", "output", "same"),
    [
        (("hi",), "hi\n", True),
        (("hi",), "ho\n", False),
        (("hi",), "hi\nho\n", False),
        (("a …  z", "b"), "a 1  z  \nb\n", True),
        (("a … z", "…"), "a 1 z\n", False),
        (("a.c",), "abc\n", False),
    ],
)
def test_what_a_page_shows_is_compared(shows: tuple[str, ...], output: str, same: bool) -> None:
    assert shown(Step("x", shows), output) is same


def test_commands_are_found() -> None:
    text = "$ pip install x\n$ up -d   # three\n$ consume\none\ntwo\n"
    assert list(steps(text)) == [Step("up -d", ()), Step("consume", ("one", "two"))]
