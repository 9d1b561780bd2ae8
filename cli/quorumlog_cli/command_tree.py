"""All commands as the parser has them: their names, help texts, options and choices. It imports every verb."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import typer

from quorumlog_cli.completing.kinds import Names, names_of
from quorumlog_cli.main import VERBS, app, load


class Option(NamedTuple):
    """names: long ones first. choices: of its value, if only these are legal. live: names that its value is one of."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...] = ()
    live: Names | None = None


class Command(NamedTuple):
    """path: the words that call it; () for `quorumlog` itself.

    words: what may come next, with its help: the commands of a group, or the choices of an argument. arguments: of
    which names each one is, in order; the last one may be repeated.
    """

    path: tuple[str, ...]
    help: str
    epilog: str
    is_group: bool
    words: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    arguments: tuple[Names | None, ...] = ()


HELP = Option(("--help", "-h"), "Show this message and exit.", takes_value=False)


def all_commands() -> list[Command]:
    """Groups and commands, each group before what is in it. Hidden ones are left out."""
    root = typer.main.get_command(app)
    words = tuple((verb.name, verb.help) for verb in VERBS if not verb.hidden)
    found = [Command((), root.help or "", root.epilog or "", is_group=True, words=words, options=_options(root))]
    for verb in VERBS:
        if not verb.hidden:
            found += _below(load(verb.name), (verb.name,))
    return found


def _below(command: Any, path: tuple[str, ...]) -> Iterator[Command]:
    children = {name: child for name, child in getattr(command, "commands", {}).items() if not child.hidden}
    words = tuple((name, child.get_short_help_str(limit=200)) for name, child in children.items())
    yield Command(
        path,
        command.help or "",
        command.epilog or "",
        is_group=bool(children),
        words=words or tuple((choice, "") for one in _arguments(command) for choice in _choices(one)),
        options=_options(command, path),
        arguments=tuple(names_of(" ".join(path), one.name, one.metavar or "") for one in _arguments(command)),
    )
    for name, child in children.items():
        yield from _below(child, (*path, name))


def _arguments(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "argument"]


def _options(command: Any, path: tuple[str, ...] = ()) -> tuple[Option, ...]:
    shown = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    return (*(made for one in shown for made in _made(one, " ".join(path))), HELP)


def _made(one: Any, command: str) -> Iterator[Option]:
    """secondary_opts: names that say the opposite, such as --no-wait."""
    is_value = not (one.is_flag or one.count)
    for names in (one.opts, one.secondary_opts):
        if names:
            live = names_of(command, names[0], one.metavar or "") if is_value else None
            yield Option(tuple(sorted(names, key=_is_short)), one.help or "", is_value, _choices(one), live)


def _is_short(name: str) -> bool:
    return not name.startswith("--")


def _choices(one: Any) -> tuple[str, ...]:
    """Where they are depends on the release of typer."""
    kind = getattr(one, "type_descriptor", None) or getattr(one, "type", None)
    found = getattr(kind, "choices", None) or ()
    return tuple(str(value.value if isinstance(value, Enum) else value) for value in found)
