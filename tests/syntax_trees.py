"""`ast.parse` without a collection of garbage in its middle, which CPython 3.11 cannot stand (gh-106905).

The interpreter counts the depth of the tree that it builds in one place for all trees. A collection that starts
meanwhile may run a finalizer that parses something, too: the warning about a coroutine that nobody awaited prints a
traceback, and that parses its lines. Then the outer call raises `SystemError: AST constructor recursion depth
mismatch`. In a long run this struck Hypothesis, which parses the source of each function that it describes, and failed
a state machine that had found nothing.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_parse = ast.parse


def parse(*arguments: Any, **options: Any) -> Any:
    """As `ast.parse`. What is garbage now is collected by the next collection after it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _parse(*arguments, **options)
    finally:
        if was_enabled:
            gc.enable()


def install() -> None:
    """For all who call `ast.parse` by its module, as Hypothesis, pytest and the standard library do."""
    ast.parse = parse


@contextmanager
def that_stay() -> Iterator[None]:
    """While many trees are made that stay until the end of the process: no collection looks through them, now or later.

    Of 2,000 modules they are millions of objects, and collections in between took five times as long as the parsing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
