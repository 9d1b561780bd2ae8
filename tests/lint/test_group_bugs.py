"""docs/group-bugs.md names tests that exist for each bug, and no bug twice."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lint.named_tests import named_tests

PAGE = Path(__file__).resolve().parents[2] / "docs" / "group-bugs.md"
ROWS = 35


def rows() -> list[list[str]]:
    lines = PAGE.read_text().splitlines()
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return found[1:]  # without the headings


def test_each_bug_has_a_test_that_exists() -> None:
    assert len(rows()) == ROWS
    named = {bugs: re.findall(r"`([^`]+)`", tests) for bugs, _, tests in rows()}
    assert [bugs for bugs, tests in named.items() if not tests] == []
    known = named_tests()
    assert [(bugs, test) for bugs, tests in named.items() for test in tests if test not in known] == []


def test_no_bug_is_there_twice() -> None:
    bugs = [bug for row in rows() for bug in re.findall(r"\d{3,}", row[0])]
    assert len(bugs) == len(set(bugs)) > 2 * ROWS - 10
