"""Each `quorumlog ...` that a page shows is a command with these options; what it does is tested elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest

from quorumlog_cli.main import VERBS, load

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "guides").glob("*.md"))]
HELP = {"-h", "--help"}  # of every command
_SHOWN = re.compile(r"`quorumlog ([a-z][^`]*)`|^ *(?:\$ (?:[^\n]*\| )?)?quorumlog ([a-z][^\n|>#;]*)", re.MULTILINE)
_CHOICE = re.compile(r"^[a-z-]+(\|[a-z-]+)+$")  # set|list|delete: each of them
_HOMES = {verb.name: verb.home for verb in VERBS}


def shown(text: str) -> list[list[str]]:
    found = []
    for in_text, in_console in _SHOWN.findall(text):
        words = (in_text or in_console).split()
        choice = next((place for place, word in enumerate(words) if _CHOICE.match(word)), None)
        if choice is None:
            found.append(words)
        else:
            found += [[*words[:choice], one, *words[choice + 1 :]] for one in words[choice].split("|")]
    return found


def unknown_in(words: list[str]) -> str:
    """The first word that is no verb, no command of it, or no option; empty if there is none."""
    if words[0] not in _HOMES:
        return words[0]
    command: Any = load(words[0])
    rest = words[1:]
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        command, rest = command.get_command(click.Context(command), rest[0]), rest[1:]
        if command is None:
            return " ".join(words)
    known = HELP.union(*([*one.opts, *one.secondary_opts] for one in command.params))
    options = [word.split("=")[0].strip("[]") for word in rest if re.match(r"\[?--?[a-zA-Z]", word)]
    return next((one for one in options if one not in known), "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_show_commands_that_there_are(page: Path) -> None:
    assert [(words, one) for words in shown(page.read_text()) if (one := unknown_in(words))] == []


def test_what_there_is_not_is_found() -> None:
    text = "`quorumlog acl list|make x`, `quorumlog user create --pasword a`\n$ echo | quorumlog tel\n quorumlog lgos\n"
    assert [unknown_in(words) for words in shown(text)] == ["", "acl make x", "--pasword", "tel", "lgos"]
    assert sum(len(shown(page.read_text())) for page in PAGES) > 150
