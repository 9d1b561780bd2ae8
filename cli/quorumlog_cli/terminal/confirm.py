"""A question before something is done that cannot be undone."""

from __future__ import annotations

import typer


def confirmed(question: str) -> bool:
    """Asks on standard error. False: the answer is no, or there is no terminal to answer."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        return False
