"""docs/decisions/ has short pages: the rule in force, its reason, what was not chosen, what it costs.

Figures are in bench/README.md, long lists of rules in a page of docs/ of their own. What a page says of the past is one
line that points at the page in force.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "decisions").glob("*.md"))
MAX_WORDS = 320  # of a page, its title and tables included
LONG_FOR_A_REASON: dict[str, str] = {}  # "NNNN": why; at most MAX_LONG of them
MAX_LONG = 5
MAX_SUPERSEDED_WORDS = 120


def words(text: str) -> int:
    """What has a letter or a figure in it: a table's bars are no words."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def findings(name: str, text: str) -> list[str]:
    """What is wrong with one page. name: of its file."""
    found = []
    number, title = name[:4], text.partition("\n")[0]
    if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name):
        found.append("its name is NNNN-what-was-decided.md")
    heading = re.match(r"# (\d+)\.? \S", title)
    if not heading or heading[1].zfill(4) != number:
        found.append(f"its first line is `# {number} ...`")
    if words(text) > MAX_WORDS and number not in LONG_FOR_A_REASON:
        found.append(f"it has {words(text)} words, more than {MAX_WORDS}: tables of figures go to bench/README.md")
    body = text.partition("\n")[2].lstrip()
    if body.lower().startswith(("superseded", "status: superseded")):
        if not re.search(r"\]\(\d{4}-[a-z0-9-]+\.md\)", body.partition("\n\n")[0]):
            found.append("it does not say which page is in force")
        if words(text) > MAX_SUPERSEDED_WORDS:
            found.append(f"it has {words(text)} words, more than {MAX_SUPERSEDED_WORDS}, and is no longer in force")
    return found


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_a_page_is_short(page: Path) -> None:
    assert findings(page.name, page.read_text()) == []


def test_numbers_are_given_once() -> None:
    numbers = [page.name[:4] for page in PAGES]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_few_pages_are_long_and_each_has_a_reason() -> None:
    assert len(LONG_FOR_A_REASON) <= MAX_LONG
    assert all(reason for reason in LONG_FOR_A_REASON.values())
    assert set(LONG_FOR_A_REASON) <= {page.name[:4] for page in PAGES}


# The rules themselves: what they must find, and what they must leave alone.
SUPERSEDED = "# 0005 Title\n\nSuperseded by [0044](0044-coordinate-groups-in-the-turn-that-hears-them.md).\n"


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("0007-a-page.md", "# 0007 Title\n\n" + "word " * (MAX_WORDS - 2), 0),
        ("0007-a-page.md", "# 0007 Title\n\n" + "word " * (MAX_WORDS - 1), 1),
        ("0007-a-page.md", "# 7. Title\n\n" + "| -- " * MAX_WORDS, 0),
        ("0007-a-page.md", "# 8. Title\n\nText", 1),
        ("7-page.md", "# 7. Title\n\nText", 2),
        ("0005-a-page.md", SUPERSEDED, 0),
        ("0005-a-page.md", SUPERSEDED + "\n" + "word " * MAX_SUPERSEDED_WORDS, 1),
        ("0005-a-page.md", "# 0005 Title\n\nSuperseded.\n\nMore: [0044](0044-x.md)", 1),
    ],
)
def test_a_finding_for_each_mistake(name: str, text: str, wrong: int) -> None:
    assert len(findings(name, text)) == wrong
