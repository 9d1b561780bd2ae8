"""Links that leave the folder of the pages.

A link to a page's source that the site has under another name leads there; any other file is shown by its path in the
repository.
"""

from __future__ import annotations

import posixpath
import re

FOLDER = "docs"  # of the pages, in the repository
MOVED = {"jepsen/README.md": "jepsen.md"}  # by path in the repository: the page that includes it
_FENCED = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def without_foreign_links(text: str, name: str) -> str:
    """name: of the page, relative to the folder of pages, without its ending."""
    here = posixpath.join(FOLDER, posixpath.dirname(name))
    parts, done = [], 0
    for fenced in _FENCED.finditer(text):
        parts += [_rewritten(text[done : fenced.start()], here), fenced[0]]
        done = fenced.end()
    return "".join([*parts, _rewritten(text[done:], here)])


def _rewritten(text: str, here: str) -> str:
    return _LINK.sub(lambda link: _link(link[0], link[1], link[2], here), text)


def _link(whole: str, words: str, target: str, here: str) -> str:
    path, _, anchor = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return whole
    found = posixpath.normpath(posixpath.join(here, path))
    if found in MOVED:
        page = posixpath.relpath(posixpath.join(FOLDER, MOVED[found]), here)
        return f"[{words}]({page}{'#' + anchor if anchor else ''})"
    if found.startswith(f"{FOLDER}/") and not found.startswith(f"{FOLDER}/rules/"):
        return whole
    plain = words.strip("`")
    return f"`{found}`" if plain == found else f"{words} (`{found}`)"
