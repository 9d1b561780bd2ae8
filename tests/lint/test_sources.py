"""A comment, a docstring or a page cites what a reader can open.

That is a KIP, an RFC, a class of Kafka's, a section of the Raft paper, another project's issue by its name, a decision
that exists, a page of docs/ and its heading. Each rule names the places that break it, as `path:line: what`.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("quorumlog", "storage", "quorum", "broker", "server", "cli", "console", "jepsen", "bench", "applications"),
    *("differential", "tests", "proto"),
)
GENERATED = "rpc/pb/"
BODIES = ("RFC", "ISO", "TLS")  # who numbers texts that anybody can get; of TLS its versions
TERMS = ("G0", "G1", "G2")  # of Adya's thesis: names of anomalies
KNOWN = re.compile(
    r"KIP-\d+|RFC \d+|[A-Z]+-\d{3,}|Kafka|Raft|Spark|Iceberg|protocol guide|[Dd]ecisions? \d+|docs/|\(\d{4}\)|`\w+\.py`"
)

Finding = tuple[int, str]  # line of the text, counted from 0; what is wrong there


@functools.cache
def decisions() -> frozenset[int]:
    return frozenset(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))


@functools.cache
def headings(page: str) -> frozenset[str]:
    """page: relative to the root."""
    return frozenset(re.findall(r"^#+ +(.+?) *$", (ROOT / page).read_text(), re.MULTILINE))


def _found(pattern: str, text: str, needle: str = "") -> Iterator[tuple[int, re.Match[str]]]:
    """needle: what each match holds; a plain look for it is much faster than a pattern."""
    if needle not in text:
        return iter(())
    return ((text.count("\n", 0, match.start()), match) for match in re.finditer(pattern, text))


def numbered_pages(text: str) -> Iterator[Finding]:
    """DESIGN 6, PAGE.md 2.1, PAGE §rule, PAGE F8: a page by its name and a number of its own."""
    for line, match in _found(r"\b([A-Z]{3,}|[A-Z]+\.md)(?:,?\s+§ ?\w+|\s+[A-Z]?\d+(?:\.\d+)*\b)", text):
        if match[1] not in BODIES:
            yield line, f"{match[0]!r} is on no page that a reader can open"


def capital_pages(text: str) -> Iterator[Finding]:
    for line, match in _found(r"(?<![\w/])([A-Z]{3,}\.md)\b", text, ".md"):
        if not (ROOT / match[1]).exists():
            yield line, f"{match[1]} is not here"


def sections(text: str) -> Iterator[Finding]:
    for line, match in _found(r"§\S*", text, "§"):
        if not re.search(r"\bRaft\s+$", text[: match.start()]) or not match[0][1:2].isdigit():
            yield line, f"{match[0]!r}: only the Raft paper is cited by its sections, as `Raft §5.3`"


def pages(text: str) -> Iterator[Finding]:
    """Paths of pages, and a heading in quotes after one."""
    for line, match in _found(r"\b((?:docs|bench)/[\w./-]*\w\.md)(?:,\s+\"([^\"]+)\")?", text, ".md"):
        if not (ROOT / match[1]).exists():
            yield line, f"{match[1]} does not exist"
        elif match[2] and " ".join(match[2].split()) not in headings(match[1]):
            yield line, f"{match[1]} has no heading {match[2]!r}"


def decision_numbers(text: str) -> Iterator[Finding]:
    for line, match in _found(r"(?:\b[Dd]ecisions?\s+|docs/decisions/)(\d+(?:(?:, | and )\d+)*)", text, "ecision"):
        for number in re.findall(r"\d+", match[1]):
            if int(number) not in decisions():
                yield line, f"there is no decision {number}"


def issues(text: str) -> Iterator[Finding]:
    for line, match in _found(r"\b[Ii]ssues? #?\d+", text, "ssue"):
        if not re.search(r"\w's\s+$", text[: match.start()]):
            yield line, f"{match[0]!r}: whose? Name the project"
    for line, match in _found(r"#(?<![^\s(]#)\d{2,}\b", text):
        yield line, f"{match[0]!r}: write owner/name#number"


def cases(text: str) -> Iterator[Finding]:
    for line, match in _found(r"(?<![\w/])cases/\S*", text, "cases/"):
        if not (ROOT / match[0].rstrip(").,:;`")).exists():
            yield line, f"{match[0]} is not here"


def short_codes(text: str) -> Iterator[Finding]:
    """(S10), (F8, F9): rows of a table that a reader does not have."""
    for line, match in _found(r"\(([A-Z]\d{1,2}(?:, [A-Z]?\d{1,2})*)\)", text):
        if match[1] not in TERMS:
            yield line, f"{match[0]}: a row of which table?"


def unknown_sources(text: str) -> Iterator[Finding]:
    """What follows `Source:` names at least one source of the kinds that this file's docstring lists."""
    for line, match in _found(r"\bSources?:\s+((?:[^.]|\.(?=\S))+)", text, "Source"):
        if not KNOWN.search(match[1]):
            yield line, f"{match[0]!r}: a source that a reader can open"


RULES = [
    numbered_pages, capital_pages, sections, pages, decision_numbers, issues, cases, short_codes, unknown_sources,
]  # fmt: skip


def of_python(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, each with its first line. Comments in a row are one text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and ast.get_docstring(node) is not None:
                yield first.lineno, ast.get_docstring(node, clean=False) or ""
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    yield from _runs(comments)


def of_proto(source: str) -> Iterator[tuple[int, str]]:
    lines = enumerate(source.splitlines(), start=1)
    yield from _runs({number: line.partition("//")[2].strip() for number, line in lines if "//" in line})


def _runs(comments: dict[int, str]) -> Iterator[tuple[int, str]]:
    for number in comments:
        if number - 1 not in comments:
            end = number
            while end in comments:
                end += 1
            yield number, "\n".join(comments[line] for line in range(number, end))


def is_suspect(source: str) -> bool:
    """A rule finds something if code is taken for text, too. Only such a file is worth parsing."""
    text = re.sub(r"^ *(?:#|//)+ ?", "", source, flags=re.MULTILINE)
    return "Source" in text or any(next(rule(text), None) for rule in RULES)


@functools.cache
def texts() -> tuple[tuple[str, int, str], ...]:
    """Path, line and text of what suspect files say beside their code, and of pages; not of the bad samples here."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".py", ".proto") and GENERATED not in name and path != Path(__file__).resolve():
                source = path.read_text()
                if is_suspect(source):
                    read = of_python if path.suffix == ".py" else of_proto
                    found += [(name, line, text) for line, text in read(source)]
    for page in (ROOT / "README.md", ROOT / "jepsen" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        found.append((page.relative_to(ROOT).as_posix(), 1, page.read_text()))
    return tuple(found)


@pytest.mark.parametrize("rule", RULES, ids=[rule.__name__ for rule in RULES])
def test_sources_can_be_opened(rule: Callable[[str], Iterator[Finding]]) -> None:
    found = [f"{path}:{first + line}: {what}" for path, first, text in texts() for line, what in rule(text)]
    assert not found, "\n" + "\n".join(found)


# The rules themselves: what each must find, and what it must leave alone.
BAD = [
    (numbered_pages, "the rules of PAGE 6.1.6"),
    (numbered_pages, "as DESIGN §6 says"),
    (numbered_pages, "it drops that flag (SPARK F8)"),
    (numbered_pages, "see KRAFT.md 2.2"),
    (numbered_pages, "ends a line with DESIGN\n12"),
    (capital_pages, "FORMATS.md has the layout"),
    (sections, "the rule (§5.4.2)"),
    (sections, "Design §5"),
    (pages, "docs/no-such-page.md"),
    (pages, 'docs/operations.md, "No such heading"'),
    (decision_numbers, "decision 9999"),
    (decision_numbers, "decisions 1 and 9999"),
    (decision_numbers, "docs/decisions/9999-never.md"),
    (issues, "as issue 12 wants"),
    (issues, "found by #4953"),
    (cases, "cases/no-such-case.json"),
    (short_codes, "late answers (N12)"),
    (short_codes, "a stall (D19, D20)"),
    (unknown_sources, "Source: the design."),
]
GOOD = [
    (numbered_pages, "RFC 5802, ISO 8601, KIP-497, KAFKA-1234, CRC-32"),
    (numbered_pages, "states STABLE and EMPTY; UNREVOKED_PARTITIONS, 2"),
    (capital_pages, "README.md and bench/README.md"),
    (sections, "Source: Raft §5.3 (and Raft §5.4.2)"),
    (pages, 'docs/operations.md, "Lost\n    majority"'),
    (decision_numbers, "decision 37, docs/decisions/0003"),
    (issues, "librdkafka's issue 4953, apache/pinot#12318"),
    (cases, "special_cases/one.json"),
    (short_codes, "cycles of writes (G0), version 2 (TV2)"),
    (unknown_sources, "Source: Kafka's `ConfigDef.Type`. Sources: KIP-36, docs/guarantees.md"),
]


@pytest.mark.parametrize(("rule", "text"), BAD)
def test_a_rule_finds_what_it_is_for(rule: Callable[[str], Iterator[Finding]], text: str) -> None:
    assert list(rule(text)) and is_suspect(f'"""{text}"""') and is_suspect("x = 1\n# " + text.replace("\n", "\n# "))


@pytest.mark.parametrize(("rule", "text"), GOOD)
def test_a_rule_leaves_the_rest_alone(rule: Callable[[str], Iterator[Finding]], text: str) -> None:
    assert not list(rule(text))


def test_comments_and_docstrings_are_read_with_their_lines() -> None:
    source = '"""One."""\n\nx = 1  # two,\n# three\ny = "# no comment"\n\n\ndef f():\n    """Four."""\n'
    assert sorted(of_python(source)) == [(1, "One."), (3, "two,\nthree"), (9, "Four.")]
    assert list(of_proto("// One\n// two\nmessage M {}  // three\n\n// four")) == [(1, "One\ntwo\nthree"), (5, "four")]
