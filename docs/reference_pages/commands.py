"""The reference of commands: from the commands' own parsers, so that nothing in it can be stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from quorumlog_cli.command_tree import Command, all_commands
from quorumlog_cli.main import EPILOG, VERBS, load


def page() -> str:
    """Markdown: exit codes, then each verb under its panel's heading, with its commands."""
    parts = ["## Exit codes\n", *_exit_codes()]
    by_verb: dict[str, list[Command]] = {}
    for command in all_commands():
        if command.path:
            by_verb.setdefault(command.path[0], []).append(command)
    panel = ""
    for verb in VERBS:
        if verb.hidden:
            continue
        if verb.panel != panel:
            panel = verb.panel
            parts.append(f"## {panel}\n")
        for command in by_verb[verb.name]:
            parts += _command(command)
    return "\n".join(parts)


def _exit_codes() -> Iterator[str]:
    """Of the help's last line, which a test holds against the codes."""
    words = EPILOG.partition(": ")[2].rstrip(".")
    yield _table(("code", "meaning"), (tuple(one.split(" ", 1)) for one in words.split(", ")))


def _command(command: Command) -> Iterator[str]:
    name = " ".join(("quorumlog", *command.path))
    found = _parser(command.path)
    context = click.Context(found, info_name=name)
    yield f"{'###' if len(command.path) == 1 else '####'} {name}\n"
    if command.is_group:
        yield f"{_escaped(command.help)}\n"
        return
    usage = " ".join(found.collect_usage_pieces(context)).replace("[[", "[").replace("]]", "]")  # some bring their own
    yield f"```text\n{name} {usage}\n```\n"
    yield f"{_escaped(command.help)}\n"
    rows = [row for one in found.params if (row := _parameter(one, context)) is not None]
    yield _table(("argument or option", "meaning"), rows)
    if examples := [line for line in command.epilog.split("\n\n")[1:] if line]:
        yield "```text\n" + "\n".join(line.replace(r"\[", "[") for line in examples) + "\n```\n"


def _parser(path: tuple[str, ...]) -> Any:
    found = load(path[0])
    for name in path[1:]:
        found = found.commands[name]
    return found


def _parameter(one: Any, context: click.Context) -> tuple[str, str] | None:
    """Names with the value's kind; the help, with the default where there is one. None: it is hidden."""
    record = one.get_help_record(context)
    return None if record is None else (f"`{record[0]}`", _escaped(record[1]))


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _escaped(text: str) -> str:
    """A help text is plain text: nothing in it is markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#$" else sign for sign in text)
