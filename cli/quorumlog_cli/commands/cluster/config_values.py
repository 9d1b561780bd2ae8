"""Parses KEY=VALUE arguments."""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog_cli.terminal.errors import CliError, Exit


def keys_and_values(texts: Iterable[str]) -> dict[str, str]:
    """Raises CliError(USAGE), also for a key given twice."""
    values: dict[str, str] = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise CliError(Exit.USAGE, f"{text}: not KEY=VALUE")
        if key.strip() in values:
            raise CliError(Exit.USAGE, f"{key.strip()} is given twice")
        values[key.strip()] = value.strip()
    return values
