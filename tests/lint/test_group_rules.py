"""docs/group-rules.md names, for each rule, modules, tests and mutants that exist, and no rule twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from jepsen.mutation.mutant import Mutant, all_mutants
from tests.lint.named_tests import named_tests

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "group-rules.md"
HANDLERS, CONVERT = ROOT / "broker" / "quorumlog_broker" / "api" / "handlers", ROOT / "quorumlog" / "wire" / "convert"
COORDINATOR = ROOT / "broker" / "quorumlog_broker" / "coordinator"
MIN_RULES_WITH_MUTANT = 45


class Rule(NamedTuple):
    """tests: as `module::function`. mutants: names of diffs."""

    number: str
    text: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    mutants: tuple[str, ...]


def rules() -> list[Rule]:
    return [_rule(line) for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]


def _rule(line: str) -> Rule:
    number, text, where, tests, mutants = (cell.strip() for cell in line.strip().strip("|").split("|"))
    return Rule(number, text, _named(where), _named(tests), tuple(mutants.split()))


def _named(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def _path(module: str) -> Path:
    first, _, rest = module.partition("/")
    folder, name = {"handlers": (HANDLERS, rest), "convert": (CONVERT, rest)}.get(first, (COORDINATOR, module))
    return folder / f"{name}.py"


def test_each_rule_has_a_test_that_exists() -> None:
    assert [rule.number for rule in rules() if not rule.tests] == []
    known = named_tests()
    assert [(rule.number, test) for rule in rules() for test in rule.tests if test not in known] == []


def test_each_rule_is_kept_somewhere() -> None:
    assert [rule.number for rule in rules() if not rule.modules] == []
    assert [(rule.number, one) for rule in rules() for one in rule.modules if not _path(one).is_file()] == []


def test_rules_are_numbered_in_order() -> None:
    numbers = [tuple(map(int, rule.number.split("."))) for rule in rules()]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 79


def test_a_sample_of_the_rules_is_removed_one_by_one() -> None:
    """And where a test notices it, that is one of the tests that the line names."""
    known = {mutant.name: mutant for mutant in all_mutants()}
    assert [(rule.number, one) for rule in rules() for one in rule.mutants if one not in known] == []
    assert sum(bool(rule.mutants) for rule in rules()) >= MIN_RULES_WITH_MUTANT
    assert [
        (rule.number, one) for rule in rules() for one in rule.mutants if not _is_killed_by_one(known[one], rule.tests)
    ] == []


def _is_killed_by_one(mutant: Mutant, tests: tuple[str, ...]) -> bool:
    if mutant.kind != "test":
        return True
    path, _, function = mutant.where.partition("::")
    module = Path(path).stem
    return any(test == f"{module}::{function}" or (not function and test.startswith(f"{module}::")) for test in tests)
