"""docs/group-rules.md names, for each rule, modules and tests that exist, and no rule twice."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lint.named_tests import named_tests

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "group-rules.md"
HANDLERS, CONVERT = ROOT / "broker" / "api" / "handlers", ROOT / "quorumlog" / "wire" / "convert"
COORDINATOR = ROOT / "broker" / "coordinator"
ROW = re.compile(r"\| (\d+\.\d+) \| (.+) \| (.+) \| (.+) \|")


def rows() -> list[tuple[str, str, list[str], list[str]]]:
    """Number, rule, modules, tests."""
    found = [ROW.fullmatch(line) for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]
    assert None not in found
    split = [match.groups() for match in found if match is not None]
    return [(number, rule, _named(where), _named(tests)) for number, rule, where, tests in split]


def _named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _path(module: str) -> Path:
    first, _, rest = module.partition("/")
    folder, name = {"handlers": (HANDLERS, rest), "convert": (CONVERT, rest)}.get(first, (COORDINATOR, module))
    return folder / f"{name}.py"


def test_each_rule_has_a_test_that_exists() -> None:
    assert [number for number, _, _, tests in rows() if not tests] == []
    known = named_tests()
    assert [(number, test) for number, _, _, tests in rows() for test in tests if test not in known] == []


def test_each_rule_is_kept_somewhere() -> None:
    assert [number for number, _, modules, _ in rows() if not modules] == []
    missing = [(number, one) for number, _, modules, _ in rows() for one in modules if not _path(one).is_file()]
    assert missing == []


def test_rules_are_numbered_in_order() -> None:
    numbers = [tuple(map(int, number.split("."))) for number, *_ in rows()]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 78
