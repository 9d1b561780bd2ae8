"""No link of a page leads to nothing: files and headings, in the repository. Other sites are not asked."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALONE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "jepsen/README.md", "bench/README.md")
PAGES = [*(ROOT / name for name in ALONE), *sorted((ROOT / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} (.*?)(?: #+)?$", re.MULTILINE)
_NAMED = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def links(text: str) -> Iterator[str]:
    """Targets in the text, code left out."""
    plain = _CODE.sub(lambda code: "x" if "](" in code[0] else code[0], _FENCED.sub("", text))
    for found in _LINK.finditer(plain):
        yield found[1] or found[2]


@functools.cache
def anchors(path: Path) -> frozenset[str]:
    """Names of a page's headings as GitHub and the site give them: the second of one name ends with -1."""
    text = _FENCED.sub("", path.read_text())
    seen: dict[str, int] = {}
    made = set(_NAMED.findall(text))
    for heading in _HEADING.findall(text):
        name = slug(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        made.add(f"{name}-{count}" if count else name)
    return frozenset(made)


def slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    kept = (one for one in plain if one in " -_" or unicodedata.category(one)[0] in "LNM")
    return "".join(kept).strip().replace(" ", "-")


def dead(page: Path) -> Iterator[str]:
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (path and ROOT not in (found, *found.parents)):
            yield f"{target}: there is no such file"
        elif anchor and found.suffix == ".md" and anchor not in anchors(found):
            yield f"{target}: the page has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_link_is_dead(page: Path) -> None:
    assert list(dead(page)) == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = ROOT / "docs" / "operations.md"
    assert slug("Settings of `a_b`: [this](x.md), too") == "settings-of-a_b-this-too"
    assert list(links("[a](b.md) `[c](d.md)` [`e`](f.md#g)\n```\n[h](i.md)\n```\n<img src=\"j.svg\">")) == [
        "b.md", "f.md#g", "j.svg",
    ]  # fmt: skip
    assert "upgrade" in anchors(page) and "no-such" not in anchors(page)
    wrong = tmp_path / "page.md"
    wrong.write_text("# A\n[x](no.md) [y](#b) [z](#a) [w](https://example.org/none)\n")
    found = list(dead(wrong))
    assert [one.partition(":")[0] for one in found] == ["no.md", "#b"]
    assert sum(len(list(links(one.read_text()))) for one in PAGES) > 300
