"""The pages that tests/rules.py writes: fresh, complete, and true about modules and mutants."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest

from jepsen.mutation.mutant import Mutant, all_mutants
from tests import rules
from tests.rules import PAGES, ROOT, Mark, Rule, all_findings, all_marks, all_rules, findings, marks_of, rules_of

BROKER = "broker/quorumlog_broker"
GROUP_FOLDERS = {"handlers": f"{BROKER}/api", "convert": "quorumlog/wire"}  # others are in the coordinator
MIN_WITH_MUTANT = {"kraft": 30, "group": 45}
GROUPS, BUGS = (next(page for page in PAGES if page.name == name) for name in ("group", "bug"))


def test_every_rule_has_a_test_every_mark_a_rule_and_the_pages_say_so() -> None:
    found = list(all_findings())
    assert not found, "\n" + "\n".join(found)


def test_numbers_follow_each_other_in_each_section() -> None:
    for page in PAGES:
        if page == BUGS:
            continue
        numbers = [rule.number.split(".") for rule in all_rules() if rule.page == page.name]
        by_section = [(section, [int(place) for _, place in row]) for section, row in groupby(numbers, lambda n: n[0])]
        assert [int(section) for section, _ in by_section] == list(range(1, len(by_section) + 1)), page.name
        assert [one for one in by_section if one[1] != list(range(1, len(one[1]) + 1))] == [], page.name


def test_no_bug_is_there_twice() -> None:
    bugs = [bug for rule in all_rules() if rule.page == BUGS.name for bug in re.findall(r"\d{3,}", rule.number)]
    assert len(bugs) == len(set(bugs)) > 60


def test_each_rule_is_kept_where_its_line_says() -> None:
    kept = [rule for rule in all_rules() if rule.page in ("storage", "group")]
    assert [rule.mark for rule in kept if not rule.where] == []
    assert [(rule.mark, one) for rule in kept for one in rule.where if not _path(rule, one).is_file()] == []


def _path(rule: Rule, module: str) -> Path:
    if rule.page == "storage":
        return ROOT / module
    return ROOT / GROUP_FOLDERS.get(module.partition("/")[0], f"{BROKER}/coordinator") / f"{module}.py"


def test_a_sample_of_the_rules_is_removed_one_by_one() -> None:
    """And where a test notices it, that is one of the tests that the line names."""
    known = {mutant.name: mutant for mutant in all_mutants()}
    with_mutant = [rule for rule in all_rules() if rule.mutants]
    assert [(rule.mark, one) for rule in with_mutant for one in rule.mutants if one not in known] == []
    for page, least in MIN_WITH_MUTANT.items():
        assert sum(rule.page == page for rule in with_mutant) >= least
    assert [
        (rule.mark, one) for rule in with_mutant for one in rule.mutants if not _is_killed_by_one_of(rule, known[one])
    ] == []


def _is_killed_by_one_of(rule: Rule, mutant: Mutant) -> bool:
    if mutant.kind != "test":
        return True
    path, _, test = mutant.where.partition("[")[0].partition("::")
    return any(mark.path == path and test in ("", mark.test) for mark in all_marks() if mark.rule == rule.mark)


# --- how sources and marks are read ---

SOURCE = """# Rules

Some [words](../other.md).

## One

- **1.1** A sentence that
  goes on
  where: a/b.py
    c.py
  mutants: 01-one 02-two
- **1.2** Another

- no rule
  of a list
"""
TABLE = """
Some [words](other.md).

## One

| # | rule | where | tests | mutant |
|---|---|---|---|---|
| 1.1 | A sentence that goes on | `a/b.py` `c.py` | `test_a::test_x` `test_a::Machine` | 01-one 02-two |
| 1.2 | Another | | `test_a::test_x` | |

- no rule
  of a list
"""
MARKED = """
from hypothesis.stateful import rule
from tests import parts, rules

@rules.rule("group 1.1", "group 1.2")
@pytest.mark.parametrize("n", [1, 2])
async def test_x(n): ...

@rules.rule("group 1.1")
class Machine(RuleBasedStateMachine):
    @rule(n=integers())
    def step(self, n): ...

TestMachine = Machine.TestCase

class TestMore:
    @rules.rule("group 1.3")
    def test_y(self): ...

@rules.rule("group 1.2")
def helper(): ...
"""


def test_an_entry_is_read_and_its_marks_come_into_the_table() -> None:
    assert rules_of(GROUPS, SOURCE) == [
        Rule("group", "1.1", "A sentence that goes on", ("a/b.py", "c.py"), ("01-one", "02-two")),
        Rule("group", "1.2", "Another", (), ()),
    ]
    marks = [mark for mark in marks_of("tests/broker/test_a.py", MARKED) if mark.is_run]
    head, page = rules.text_of(GROUPS, SOURCE, marks).split("\n\n", 1)
    assert "docs/rules/group.md" in head and "\n" + page == TABLE


def test_marks_are_read_without_an_import() -> None:
    marks = list(marks_of("tests/broker/test_a.py", MARKED))
    assert [(mark.rule, mark.test, mark.is_run) for mark in marks] == [
        ("group 1.1", "test_x", True),
        ("group 1.2", "test_x", True),
        ("group 1.1", "Machine", True),
        ("group 1.3", "test_y", True),
        ("group 1.2", "helper", False),
    ]
    assert (marks[0].line, marks[0].shown) == (5, "test_a::test_x")
    assert not any(mark.is_run for mark in marks_of("tests/broker/not_a_test.py", MARKED))
    assert list(marks_of("tests/test_b.py", '@rule("group 1.1")\ndef test_of_another_rule(): ...\n')) == []


@pytest.mark.parametrize(
    ("numbers", "marks", "found"),
    [
        (["1.1"], [("kraft 1.1", "test_a")], []),
        (["1.1", "1.2"], [("kraft 1.1", "test_a")], ["no test shows 'kraft 1.2'"]),
        (["1.1"], [("kraft 1.1", "test_a"), ("kraft 2.1", "test_a")], ["test_m.py:7: no rule 'kraft 2.1'"]),
        (["1.1"], [("kraft 1.1", "test_a"), ("kraft 1.1", "helper")], ["test_m.py:7: helper is marked"]),
        (["1.1", "1.1"], [("kraft 1.1", "test_a")], ["'kraft 1.1' stands there 2 times"]),
    ],
    ids=["nothing", "no test", "no rule", "not a test", "twice"],
)
def test_what_is_wrong_is_said(numbers: list[str], marks: list[tuple[str, str]], found: list[str]) -> None:
    said = list(
        findings(
            [Rule("kraft", number, "A rule", (), ()) for number in numbers],
            [Mark(rule, "tests/test_m.py", 7, test, test.startswith("test_")) for rule, test in marks],
        )
    )
    assert len(said) == len(found) and all(part in text for part, text in zip(found, said, strict=True))


def test_a_bug_is_marked_by_its_first_number() -> None:
    source = "- **redpanda 9571, 6423** a commit\n- **17754, jepsen.io/x** a late EndTxn\n"
    assert [rule.mark for rule in rules_of(BUGS, source)] == ["bug redpanda 9571", "bug 17754"]


def test_a_mark_changes_nothing() -> None:
    def test() -> None: ...

    assert rules.rule("kraft 1.1")(test) is test
