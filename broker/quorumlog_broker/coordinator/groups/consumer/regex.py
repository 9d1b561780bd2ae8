"""Subscriptions by regular expression: RE2, which takes time in proportion to the text whatever the expression is.

An expression has to match a topic's whole name. Names are looked through in slices, off the way of calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import re2

from quorumlog.slices import Sliced

MAX_LENGTH = 16_384  # characters of an expression
MAX_MEMORY_BYTES = 8 << 20  # that RE2 may take for one
COMPILED = 256  # expressions that are remembered
SLICE = 1_000
"""Names that are matched between two steps: about 2 ms."""


class InvalidExpression(ValueError):
    """RE2 does not take it."""


@lru_cache(COMPILED)
def _compiled(regex: str) -> Any:
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MAX_MEMORY_BYTES
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not valid"
        raise InvalidExpression(reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from error


def why_invalid(regex: str) -> str | None:
    """None: it is valid."""
    if len(regex) > MAX_LENGTH:
        return f"it has {len(regex)} characters, more than {MAX_LENGTH}"
    try:
        _compiled(regex)
    except InvalidExpression as error:
        return str(error)
    return None


def resolve(regex: str, names: Sequence[str]) -> Sliced[tuple[str, ...]]:
    """The names that it matches, in their order. One that RE2 does not take (of old software) matches none."""
    if why_invalid(regex) is not None:
        return ()
    pattern, found = _compiled(regex), []
    for number, name in enumerate(names):
        if number % SLICE == SLICE - 1:
            yield
        if pattern.fullmatch(name) is not None:
            found.append(name)
    return tuple(found)
