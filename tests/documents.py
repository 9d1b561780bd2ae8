"""Holds what commands print with `-o json` against the schemas that they declare, whichever test runs them.

Here a schema is closed: a document with a field that is not declared is a finding, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pytest

OUTPUT = "quorumlog_cli.terminal.output"


@cache
def _validator(command: str, on_lines: bool) -> Any:
    from jsonschema import Draft202012Validator

    from quorumlog_cli.documents.schema import schema_of
    from quorumlog_cli.documents.table import DOCUMENTS

    prints = DOCUMENTS[command]
    kind = prints.line if on_lines else prints.document
    assert kind is not None, f"quorumlog {command} declares no document {'on lines' if on_lines else 'alone'}"
    return Draft202012Validator(schema_of(kind, closed=True))


def check_document(command: str, document: Any, *, on_lines: bool = False) -> None:
    """command: its words. Raises AssertionError that says where the document differs from what is declared."""
    from jsonschema.exceptions import best_match

    error = best_match(_validator(command, on_lines).iter_errors(document))
    assert error is None, f"quorumlog {command} -o json: {error.json_path}: {error.message}"


@contextmanager
def watched(seen: Callable[[str], object] = lambda _: None) -> Iterator[None]:
    """Check each document that a command in this process prints. seen: gets the command, if all is right.

    Raises AssertionError at the end: a command reports what is raised in it, and its test may want it to fail.
    """
    output = sys.modules.get(OUTPUT)
    if output is None:  # those tests that run commands have loaded it
        yield
        return
    wrong: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, on_lines in (("show_json", False), ("show_json_line", True)):
            patch.setattr(output, name, partial(_checked, getattr(output, name), on_lines, seen, wrong))
        yield
    assert not wrong, "\n".join(wrong)


def _checked(
    show: Callable[[Any], None], on_lines: bool, seen: Callable[[str], object], wrong: list[str], value: Any
) -> None:
    from typer._click.globals import get_current_context

    from quorumlog_cli.terminal.output import json_text

    context = get_current_context(silent=True)
    if context is not None:  # None: a test calls a part of a command
        command = command_of(context.command_path.split()[1:])
        try:
            check_document(command, json.loads(json_text(value)), on_lines=on_lines)
        except AssertionError as error:
            wrong.append(str(error))
        else:
            seen(command)
    show(value)


def command_of(words: Sequence[str]) -> str:
    """Of txn list --state ongoing: transaction list, as the command is called in the table."""
    from quorumlog_cli.documents.table import DOCUMENTS
    from quorumlog_cli.main import VERBS

    homes = {one.name: one.home for one in VERBS}
    verb = next(one.name for one in VERBS if one.home == homes[words[0]])
    paths = [" ".join([verb, *words[1 : 1 + more]]) for more in range(len(words))]
    return next(path for path in reversed(paths) if path in DOCUMENTS)
