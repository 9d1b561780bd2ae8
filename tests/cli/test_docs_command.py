"""`quorumlog docs`: the pages of the index, whole, on a terminal of any width, and found by their words."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown

from quorumlog_cli import site_pages
from quorumlog_cli.main import main
from quorumlog_cli.site_pages import find, named, pages
from quorumlog_cli.terminal.errors import Exit
from quorumlog_cli.terminal.wide_tables import narrowed

DOCS = Path(__file__).resolve().parents[2] / "docs"
INDEX = """\
# All
```{toctree}
:caption: Guides
:glob:
:maxdepth: 1

guides/spark
later*
spark
guides/operators
```
```{toctree}
:caption: Reference

made
```
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guides").mkdir()
    texts = {
        "index": INDEX,
        "guides/spark": "# Guide to Spark\n\n## Stop\n\nStop a query.\n```\n# no heading\nstop\n```\n",
        "spark": "# Spark\n",
        "guides/operators": "# For operators\n\nAt night, stop and read.\n",
        "made": "# Made\n<!-- generated: made -->\n",
        "unlisted": "# In no list\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.md").write_text(text)
    return tmp_path


def test_the_list_is_that_of_the_index(folder: Path) -> None:
    assert [(one.topic, one.title, one.section) for one in pages(folder)] == [
        ("guides/spark", "Guide to Spark", "Guides"),
        ("spark", "Spark", "Guides"),
        ("guides/operators", "For operators", "Guides"),
    ]


@pytest.mark.parametrize(
    ("topic", "want"),
    [("spark", "spark"), ("guides/spark", "guides/spark"), ("Operators.md", "guides/operators"), ("made", None)],
)
def test_a_page_is_named_by_its_last_part_if_no_other_has_it(folder: Path, topic: str, want: str | None) -> None:
    found = named(pages(folder), topic)
    assert (found and found.topic) == want


def test_lines_are_found_under_their_headings(folder: Path) -> None:
    found = [(one.topic, one.heading, one.number) for one in find(pages(folder), "STOP")]
    assert found == [("guides/spark", "Stop", 3), ("guides/spark", "Stop", 5), ("guides/spark", "Stop", 8),
                     ("guides/operators", "For operators", 3)]  # fmt: skip
    assert [one.number for one in find(pages(folder), "stop query")] == [5]
    assert list(find(pages(folder), " ")) == [] == list(find(pages(folder), "nowhere"))


def test_the_pages_of_this_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "-o", "json"]) == Exit.DONE
    listed = [page["topic"] for page in json.loads(capsys.readouterr().out)["pages"]]
    assert {"operations", "settings", "errors", "guarantees"} <= set(listed)
    assert main(["docs", "operations"]) == Exit.DONE
    assert capsys.readouterr().out == (DOCS / "operations.md").read_text()
    assert main(["docs", "operations", "-o", "json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["title"] == "Operations"
    assert main(["docs", "--find", "NOT_ENOUGH_REPLICAS", "-o", "json"]) == Exit.DONE
    assert "errors" in [one["topic"] for one in json.loads(capsys.readouterr().out)["found"]]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["operation"], Exit.NOT_FOUND, "did you mean operations"),
        (["--find", "no such words anywhere here"], Exit.NOT_FOUND, "no page has"),
        (["--browser"], Exit.PRECONDITION, "./dev docs builds"),
    ],
)
def test_what_is_not_there_is_told(
    words: list[str],
    code: Exit,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(site_pages, "SITE", tmp_path)
    assert main(["docs", *words]) == code
    assert told in " ".join(capsys.readouterr().err.split())


def test_the_built_site_is_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(site_pages, "SITE", tmp_path)
    for name in ("index", "operations"):
        (tmp_path / f"{name}.html").write_text("")
    assert main(["docs", "--browser"]) == main(["docs", "operations", "--browser"]) == Exit.DONE
    assert opened == [(tmp_path / f"{name}.html").as_uri() for name in ("index", "operations")]
    assert capsys.readouterr().out.split() == ["SITE", opened[0], "SITE", opened[1]]


def shown(text: str, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(Markdown(narrowed(text, width), hyperlinks=False))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("width", [80, 200])
def test_no_name_of_a_table_is_cut_off(width: int) -> None:
    """rich ends a word that does not fit into its column with `…`: the name of an error could not be searched for."""
    said = shown((DOCS / "errors.md").read_text(), width)
    names = re.findall(r"`([A-Z_]{3,})`", (DOCS / "errors.md").read_text())
    assert len(names) > 100 and [name for name in names if name not in said] == []


@given(st.lists(st.lists(st.from_regex(r"[a-z`]{0,9}", fullmatch=True), min_size=2, max_size=4), min_size=1))
def test_a_list_has_every_cell_of_the_table(rows: list[list[str]]) -> None:
    wide = [row + [""] * (4 - len(row)) for row in rows]
    table = "".join(f"| {' | '.join(row)} |\n" for row in [["a", "b", "c", "d"], ["---"] * 4, *wide])
    made = narrowed(f"before\n\n{table}\nafter | all\n", width=10)
    assert made.startswith("before\n\n- ") and made.endswith("\n\nafter | all\n")
    assert made.count("\n- ") == len(rows)
    lines = [line for line in made.split("\n") if line.startswith("- ")]
    assert all(cell in line for line, row in zip(lines, wide, strict=True) for cell in row)
    assert narrowed(table, width=1_000) == table
    assert narrowed(f"```\n{table}```\n", width=10) == f"```\n{table}```\n"
