"""docs/log-scenarios.md names a test that exists for each scenario, and leaves no number out."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from tests.lint.named_tests import named_tests

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "log-scenarios.md"
SCENARIOS = (17, 15, 22, 9, 7, 15, 22, 13)  # of each section

Row = tuple[tuple[int, int], list[str]]  # number, the tests as `module::function` or `module::Class`


def rows() -> list[Row]:
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]
    found = []
    for number, _, tests in lines:
        section, place = map(int, number.split("."))
        found.append(((section, place), re.findall(r"`([^`]+)`", tests)))
    return found


def test_every_scenario_has_a_test_that_exists() -> None:
    known = named_tests()
    assert [number for number, tests in rows() if not tests] == []
    assert [(number, test) for number, tests in rows() for test in tests if test not in known] == []


def test_no_scenario_is_left_out() -> None:
    by_section = {section: [at for (_, at), _ in row] for section, row in groupby(rows(), key=lambda row: row[0][0])}
    assert by_section == {section: list(range(1, count + 1)) for section, count in enumerate(SCENARIOS, start=1)}
