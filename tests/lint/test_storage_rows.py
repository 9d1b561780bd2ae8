"""docs/storage-rows.md names modules and tests that exist, and numbers its rows without a gap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.lint.named_tests import named_tests

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "storage-rows.md"
MIN_ROWS = 140


@dataclass(frozen=True, slots=True)
class Row:
    """places: paths from the root. tests: as `module::function`, or `module::Class` of a state machine."""

    number: tuple[int, int]
    text: str
    places: tuple[str, ...]
    tests: tuple[str, ...]


@cache
def rows() -> tuple[Row, ...]:
    return tuple(_row(line) for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line))


def _row(line: str) -> Row:
    number, text, places, tests = (cell.strip() for cell in line.strip().strip("|").split("|"))
    section, place = number.split(".")
    named = [tuple(re.findall(r"`([^`]+)`", cell)) for cell in (places, tests)]
    return Row((int(section), int(place)), text, *named)


def test_every_row_names_a_test_that_exists() -> None:
    assert len(rows()) >= MIN_ROWS
    assert [row.number for row in rows() if not row.tests] == []
    known = named_tests()
    assert [(row.number, test) for row in rows() for test in row.tests if test not in known] == []


def test_every_row_names_a_place_that_exists() -> None:
    assert [row.number for row in rows() if not row.places] == []
    assert [(row.number, place) for row in rows() for place in row.places if not (ROOT / place).is_file()] == []


def test_numbers_follow_each_other_in_each_section() -> None:
    sections: dict[int, list[int]] = {}
    for row in rows():
        sections.setdefault(row.number[0], []).append(row.number[1])
    assert {section: places for section, places in sections.items() if places != list(range(1, len(places) + 1))} == {}
    assert sorted(sections) == list(range(1, len(sections) + 1))
