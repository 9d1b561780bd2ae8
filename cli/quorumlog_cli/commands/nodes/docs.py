"""`quorumlog docs`: the documentation of this version, in the terminal or a browser."""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from quorumlog_cli import site_pages
from quorumlog_cli.site_pages import Page
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.wide_tables import narrowed

app = typer.Typer(add_completion=False)
LINE_CHARACTERS = 160  # of a line that was found; a row of a table may be longer than a screen
PAGER_OPTIONS = "FRX"  # of less, where the user has none: as git's, with colours and without a page for few lines
BUILD = "./dev docs builds the site in a checkout; quorumlog docs TOPIC shows a page here"


@app.command("docs")
def docs(
    topic: Annotated[
        str, typer.Argument(metavar="[TOPIC]", help="The page to show, such as operations. Without it: the list.")
    ] = "",
    words: Annotated[str, typer.Option("--find", metavar="WORDS", help="Show the lines that have all the words.")] = "",
    browser: Annotated[bool, typer.Option("--browser", help="Open the site that ./dev docs has built.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the documentation of this version: the list of pages, or one of them.

    On a terminal a page is laid out, and in a pager if it is long; otherwise it is Markdown as it is written.
    """
    output.use(output_format)
    folder = site_pages.folder()
    if folder is None:
        raise CliError(Exit.NOT_FOUND, "the pages are not installed", "install quorumlog from a wheel or a checkout")
    pages = site_pages.pages(folder)
    chosen = _named(pages, topic) if topic else None
    if browser:
        _open(chosen)
    elif words:
        _show_found([chosen] if chosen else pages, words)
    elif chosen:
        _show(chosen)
    else:
        rows = [(page.topic, page.title, page.section) for page in pages]
        output.show(("TOPIC", "TITLE", "PART"), rows, {"pages": [_described(page) for page in pages]})


def _named(pages: list[Page], topic: str) -> Page:
    found = site_pages.named(pages, topic)
    if found is not None:
        return found
    near = difflib.get_close_matches(topic, [page.topic for page in pages])
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise CliError(Exit.NOT_FOUND, f"there is no page {topic}", f"{hint}quorumlog docs lists all of them")


def _described(page: Page) -> dict[str, str]:
    return {"topic": page.topic, "title": page.title, "part": page.section}


def _show_found(pages: list[Page], words: str) -> None:
    found = list(site_pages.find(pages, words))
    if not found:
        raise CliError(Exit.NOT_FOUND, f"no page has {words!r}", "quorumlog docs lists the pages")
    rows = [(one.topic, one.heading, one.number, one.text[:LINE_CHARACTERS]) for one in found]
    output.show(("TOPIC", "HEADING", "LINE", "TEXT"), rows, {"found": [one._asdict() for one in found]})


def _show(page: Page) -> None:
    text = page.path.read_text(encoding="utf-8")
    if output.is_json():
        output.show_json({**_described(page), "text": text})
    elif not sys.stdout.isatty():
        sys.stdout.write(text)
    else:
        _lay_out(text)


def _lay_out(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", PAGER_OPTIONS)
    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(narrowed(text, console.width), hyperlinks=False))


def _open(page: Page | None) -> None:
    """In a browser, where there is one; the path is told in any case."""
    import webbrowser

    path: Path = site_pages.SITE / (f"{page.topic}.html" if page else "index.html")
    if not path.is_file():
        raise CliError(Exit.PRECONDITION, "the site is not built here", BUILD)
    output.show(("SITE",), [(path.as_uri(),)], {"site": path.as_uri()})
    webbrowser.open(path.as_uri())
