"""docs/kraft-rules.md names tests and mutants that exist, and numbers its rules without a gap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kraft-rules.md"
MUTANTS = ROOT / "jepsen" / "mutants"
MIN_RULES = 100
MIN_RULES_WITH_MUTANT = 30


@dataclass(frozen=True, slots=True)
class Rule:
    """tests: as `module::function`. mutant: the name of a diff, "" for none."""

    number: tuple[int, int]
    text: str
    tests: tuple[str, ...]
    mutant: str


@cache
def rules() -> tuple[Rule, ...]:
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]
    return tuple(_rule(line) for line in lines)


def _rule(line: str) -> Rule:
    number, text, tests, mutant = (cell.strip() for cell in line.strip().strip("|").split("|"))
    section, place = number.split(".")
    return Rule((int(section), int(place)), text, tuple(re.findall(r"`([^`]+)`", tests)), mutant)


def _tests() -> set[str]:
    """By the text: in a long run, CPython 3.11 may fail to build a syntax tree (gh-106905)."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        names = re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
        found.update(f"{path.stem}::{name}" for name in names)
    return found


def test_every_rule_has_a_test_that_exists() -> None:
    assert len(rules()) >= MIN_RULES
    assert [rule.number for rule in rules() if not rule.tests] == []
    known = _tests()
    assert [(rule.number, test) for rule in rules() for test in rule.tests if test not in known] == []


def test_numbers_follow_each_other_in_each_section() -> None:
    sections: dict[int, list[int]] = {}
    for rule in rules():
        sections.setdefault(rule.number[0], []).append(rule.number[1])
    assert {section: places for section, places in sections.items() if places != list(range(1, len(places) + 1))} == {}


def test_a_sample_of_the_rules_is_removed_one_by_one() -> None:
    named = {rule.mutant for rule in rules() if rule.mutant}
    assert [name for name in sorted(named) if not (MUTANTS / f"{name}.diff").exists()] == []
    assert len(named) >= MIN_RULES_WITH_MUTANT
