"""The pages of the documentation that are here: which there are, by their index, and in which files.

A wheel carries them beside this module, in `pages/`; a checkout has them in `docs/`. The list is that of the site: the
entries of `index.md`. The hook that builds the wheel reads this file by itself, so it imports nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CARRIED = Path(__file__).resolve().parent / "pages"  # in a wheel
CHECKOUT = Path(__file__).resolve().parents[2]
SOURCE = CHECKOUT / "docs"
SITE = CHECKOUT / "build" / "site"  # where ./dev docs builds it
INDEX = "index.md"
_LIST = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("```{toctree}", "```{include}", "<!-- generated:")  # the text of such a page is made with the site
_FENCE = re.compile(r"^ *```")


class Page(NamedTuple):
    """topic: its name in the index, such as `guides/spark`. section: the caption it stands under."""

    topic: str
    title: str
    section: str
    path: Path


class Found(NamedTuple):
    """A line of a page. number: counted from 1. heading: of the part that the line is in."""

    topic: str
    heading: str
    number: int
    text: str


def folder() -> Path | None:
    """Of the pages. None: this is neither an installed wheel nor a checkout."""
    return next((one for one in (CARRIED, SOURCE) if (one / INDEX).is_file()), None)


def pages(folder: Path) -> list[Page]:
    """In the index's order; those that are whole as they are. An entry that ends with `*` may name no page."""
    return list(_pages(folder))


def _pages(folder: Path) -> Iterator[Page]:
    for block in _LIST.findall((folder / INDEX).read_text(encoding="utf-8")):
        options = dict(re.findall(r"^:(\w+): *(.*)$", block, re.MULTILINE))
        for entry in re.findall(r"^[\w/*-]+$", block, re.MULTILINE):
            for path in sorted(folder.glob(f"{entry}.md")):
                text = path.read_text(encoding="utf-8")
                if not any(mark in text for mark in _ELSEWHERE):
                    topic = path.relative_to(folder).with_suffix("").as_posix()
                    yield Page(topic, title_of(text), options.get("caption", ""), path)


def title_of(text: str) -> str:
    """The first heading; empty if there is none."""
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def named(pages: list[Page], topic: str) -> Page | None:
    """By its whole name, or by its last part if only one page has it; any case, with or without `.md`."""
    wanted = topic.lower().removesuffix(".md")
    whole = [one for one in pages if one.topic == wanted]
    last = [one for one in pages if one.topic.rpartition("/")[2] == wanted]
    return whole[0] if whole else last[0] if len(last) == 1 else None


def find(pages: list[Page], words: str) -> Iterator[Found]:
    """Lines that have all the words, in any case; the words of the line's heading count, too, if one is in the line."""
    wanted = words.lower().split()
    for page in pages:
        heading, in_code = page.title, False
        for number, line in enumerate(page.path.read_text(encoding="utf-8").splitlines(), 1):
            in_code ^= _FENCE.match(line) is not None
            if line.startswith("#") and not in_code:
                heading = line.lstrip("# ")
            own, near = line.lower(), f"{heading} {line}".lower()
            if wanted and any(word in own for word in wanted) and all(word in near for word in wanted):
                yield Found(page.topic, heading, number, line.strip())
