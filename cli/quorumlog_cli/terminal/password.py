"""Where a command gets a password from: a file, the environment, or the terminal. What stands on a command line can be
seen by every user of the machine, so that is taken with a warning.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit

ENV, FILE = "env:", "file:"

PasswordOption = Annotated[
    str | None,
    typer.Option("--password", metavar="env:NAME", help="Of an environment variable, or file:PATH. Else it is asked."),
]
PasswordFileOption = Annotated[
    Path | None, typer.Option("--password-file", metavar="FILE", help="Its first line; - is the standard input.")
]


def read_password(user: str, given: str | None, file: Path | None, env: Mapping[str, str] = os.environ) -> str:
    """Raises CliError(USAGE); OSError of a file."""
    if given is not None and file is not None:
        raise CliError(Exit.USAGE, "give either --password or --password-file")
    if file is not None:
        return _checked(sys.stdin.readline() if str(file) == "-" else _first_line(file))
    if given is None:
        return _checked(_asked(user))
    if given.startswith(ENV):
        name = given.removeprefix(ENV)
        if name not in env:
            raise CliError(Exit.USAGE, f"--password {given}: there is no environment variable {name}")
        return _checked(env[name])
    if given.startswith(FILE):
        return _checked(_first_line(Path(given.removeprefix(FILE))))
    warn_in_clear("--password env:NAME or --password-file FILE")
    return _checked(given)


def warn_in_clear(instead: str) -> None:
    output.complain(
        "the password stands on the command line, where every user of this machine can read it",
        f"say {instead}, and change the password",
    )


def _asked(user: str) -> str:
    if not sys.stdin.isatty():
        raise CliError(Exit.USAGE, "there is no terminal to ask for a password", "--password-file FILE takes it")
    text: str = typer.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
    return text


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline()


def _checked(text: str) -> str:
    password = text.rstrip("\r\n")
    if not password:
        raise CliError(Exit.USAGE, "the password is empty")
    return password
