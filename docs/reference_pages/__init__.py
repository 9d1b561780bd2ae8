"""An extension of Sphinx: makes the reference from the code, and leads links past the folder of the pages.

A page says `<!-- generated: NAME -->` where the text of `PAGES[NAME]` belongs. A link to a file of the repository that
is no page becomes the file's path: the site stands elsewhere than the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reference_pages import commands, decisions, docstrings, outside, python_api

PAGES: dict[str, Callable[[], str]] = {
    "commands": commands.page,
    "decisions": decisions.page,
    "python": python_api.page,
}
_MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
_MAY_BE_NONE = re.compile(r"^[\w/-]+\*\n", re.MULTILINE)  # an entry of a list of pages


def fill_in(text: str) -> str:
    """The page with what is made from code. Raises KeyError for a name that nothing makes."""
    return _MARK.sub(lambda found: PAGES[found[1]](), text)


def listed(text: str, folder: Path) -> str:
    """A list of pages without the entries `NAME*` that name none. folder: of the pages."""
    return _MAY_BE_NONE.sub(lambda found: found[0] if any(folder.glob(f"{found[0].strip()}.md")) else "", text)


def _on_source(app: Any, name: str, source: list[str]) -> None:
    """source: the page's text, to be replaced in place."""
    text = listed(source[0], Path(app.srcdir)) if name == "index" else source[0]
    text = decisions.ORPHAN + text if name.startswith("decisions/") else text
    source[0] = outside.without_foreign_links(fill_in(text), name)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _on_source)
    app.connect("autodoc-process-docstring", docstrings.on_docstring)
    app.connect("autodoc-skip-member", python_api.on_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
