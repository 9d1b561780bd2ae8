"""Marks on tests, and the pages that tell which test shows which rule: `python -m tests.rules [--check]`.

A rule is what a line of docs/kraft-rules.md, docs/storage-rows.md, docs/log-scenarios.md, docs/group-rules.md,
docs/group-bugs.md or docs/security-rules.md says. It stands once in docs/rules/, with what only a person can say of it,
and is wrapped at will:

    - **1.5** Only a candidate with the votes of a majority becomes leader
      mutants: 59-half-is-a-majority

Where its page has such a column, `where:` names the modules that keep it. A test that shows it says so, and is in its
line from then on: `@rule("kraft 1.5")`, the name of the file in docs/rules/ and the number there; of a bug with several
numbers the first one. Everything else of docs/rules/ is copied as it is.

--check exits with 1 and says what is wrong: a stale page, a rule without a test, a mark that names no rule.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[1]
ENTRY = re.compile(r"^- \*\*(.+?)\*\* (.+(?:\n  .+)*)\n", re.MULTILINE)
ENTRIES = re.compile(rf"(?:{ENTRY.pattern})+", re.MULTILINE)
FIELD = re.compile(r"\n  (?=(?:where|mutants): )")

T = TypeVar("T")


def rule(*marks: str) -> Callable[[T], T]:
    """Marks a test, or the class of a state machine, with the rules that it shows. Changes nothing at run time: marks
    are read from the source.
    """
    return lambda test: test


class Page(NamedTuple):
    """name: of its file in docs/rules/, and in marks. target: the page in docs/.

    columns: of its tables, heading to what it shows.
    """

    name: str
    target: str
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """page: its name. number: as the page shows it. where: modules, as the page says. mutants: names of diffs."""

    page: str
    number: str
    text: str
    where: tuple[str, ...]
    mutants: tuple[str, ...]

    @property
    def mark(self) -> str:
        return f"{self.page} {self.number.partition(',')[0]}"


@dataclass(frozen=True, slots=True)
class Mark:
    """rule: as `Rule.mark`. path: of the test's module, from the root. test: a function or a class of it."""

    rule: str
    path: str
    line: int
    test: str
    is_run: bool  # by pytest

    @property
    def shown(self) -> str:
        return f"{Path(self.path).stem}::{self.test}"


_RULE = {"#": "number", "rule": "text"}
PAGES = (
    Page("kraft", "kraft-rules.md", {**_RULE, "tests": "tests", "mutant": "mutants"}),
    Page("storage", "storage-rows.md", {"#": "number", "what": "text", "where": "where", "tests": "tests"}),
    Page("log", "log-scenarios.md", {"#": "number", "scenario": "text", "tests": "tests"}),
    Page("group", "group-rules.md", {**_RULE, "where": "where", "tests": "tests", "mutant": "mutants"}),
    Page("bug", "group-bugs.md", {"bugs": "number", "what went wrong": "text", "tests": "tests"}),
    Page(
        "security",
        "security-rules.md",
        {"#": "number", "invariant": "text", "simulation": "where", "tests": "tests", "mutant": "mutants"},
    ),
)


def rules_of(page: Page, source: str) -> list[Rule]:
    """source: the text of its file in docs/rules/, or a part of it."""
    found = []
    for number, rest in ENTRY.findall(source):
        text, *fields = (" ".join(part.split()) for part in FIELD.split(rest))
        said = dict(field.split(": ", 1) for field in fields)
        assert set(said) <= set(page.columns.values()), f"{page.name} {number}: no column for one of {list(said)}"
        where, mutants = (tuple(said.get(name, "").split()) for name in ("where", "mutants"))
        found.append(Rule(page.name, number, text, where, mutants))
    return found


def marks_of(path: str, source: str) -> Iterator[Mark]:
    """In the order of the source. Raises ValueError for a mark that is no literal."""
    if "rules" not in source:
        return
    tree = ast.parse(source, filename=path)
    nodes = list(ast.walk(tree))
    names = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "tests.rules":
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "rule"}
        elif isinstance(node, ast.ImportFrom) and node.module == "tests":
            names |= {f"{alias.asname or alias.name}.rule" for alias in node.names if alias.name == "rules"}
    tests = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    for test in sorted(tests, key=lambda node: node.lineno):
        for call in test.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) in names:
                is_test = test.name.lower().startswith("test") or f"{test.name}.TestCase" in source
                is_run = is_test and Path(path).name.startswith("test_")
                for argument in call.args:
                    yield Mark(ast.literal_eval(argument), path, call.lineno, test.name, is_run)


def text_of(page: Page, source: str, marks: Iterable[Mark]) -> str:
    """The page. A link of the source is one from docs/rules/."""
    tests: dict[str, list[str]] = {}
    for mark in marks:
        tests.setdefault(mark.rule, []).append(mark.shown)

    def table(entries: re.Match[str]) -> str:
        lines = [list(page.columns)]
        for rule in rules_of(page, entries[0]):
            cells = {"number": rule.number, "text": rule.text, "mutants": " ".join(rule.mutants)}
            cells |= {"where": _quoted(rule.where), "tests": _quoted(tests.get(rule.mark, []))}
            lines.append([cells[shown] for shown in page.columns.values()])
        first, *others = ("|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in lines)
        return "\n".join([first, "|" + "---|" * len(page.columns), *others, ""])

    head = f"<!-- Written by `./dev proto` from docs/rules/{page.name}.md and the marks of tests; change those. -->\n"
    return head + ENTRIES.sub(table, source).replace("](../", "](")


def _quoted(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def findings(rules: Iterable[Rule], marks: Iterable[Mark]) -> Iterator[str]:
    """Rules that no test shows, rules that share a number, marks that name no rule or are on no test."""
    rules, marks = list(rules), list(marks)
    known = Counter(rule.mark for rule in rules)
    shown = {mark.rule for mark in marks}
    for name, count in known.items():
        if count > 1:
            yield f"docs/rules/: {name!r} stands there {count} times"
        if name not in shown:
            yield f'docs/rules/: no test shows {name!r}; mark one with @rule("{name}")'
    for mark in marks:
        if mark.rule not in known:
            yield f"{mark.path}:{mark.line}: no rule {mark.rule!r} stands in docs/rules/"
        if not mark.is_run:
            yield f"{mark.path}:{mark.line}: {mark.test} is marked with {mark.rule!r} and is no test"


# --- the tree's own ---


def source_of(page: Page) -> str:
    return (ROOT / "docs" / "rules" / f"{page.name}.md").read_text()


def all_rules() -> list[Rule]:
    return [rule for page in PAGES for rule in rules_of(page, source_of(page))]


@functools.cache
def all_marks() -> tuple[Mark, ...]:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return tuple(mark for path in paths for mark in marks_of(path.relative_to(ROOT).as_posix(), path.read_text()))


def all_findings() -> Iterator[str]:
    yield from findings(all_rules(), all_marks())
    for page in PAGES:
        path = ROOT / "docs" / page.target
        if not path.exists() or path.read_text() != text_of(page, source_of(page), all_marks()):
            yield f"stale: docs/{page.target}; run `./dev proto`"


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the pages of docs/ that name the tests of each rule.")
    parser.add_argument("--check", action="store_true", help="only tell what is wrong")
    if not parser.parse_args().check:
        for page in PAGES:
            (ROOT / "docs" / page.target).write_text(text_of(page, source_of(page), all_marks()))
    found = list(all_findings())
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
