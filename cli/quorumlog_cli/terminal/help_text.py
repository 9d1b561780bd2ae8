"""Help texts as the terminal is wide: typer keeps the line ends of a docstring, which then break lines twice."""

from __future__ import annotations

from typing import Any


def flow(command: Any) -> None:
    """Let the paragraphs of a command's help, and of those in its group, be one line each; the terminal breaks them."""
    for child in getattr(command, "commands", {}).values():
        flow(child)
    if command.help:
        command.help = "\n\n".join(" ".join(one.split()) for one in command.help.split("\n\n"))
