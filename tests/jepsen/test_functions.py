"""Which functions a simulation runs: what counts as a function, how calls are noted, and what is told."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase

import pytest

from jepsen.functions.defined import defined_functions, functions_of
from jepsen.functions.reached import MAY_STAY, may_stay, report, share, unreached
from jepsen.functions.tracing import _NAME, noting

DEFINED = defined_functions()
SOURCE = '''
"""A module."""
from typing import Protocol


class Seam(Protocol):
    def call(self) -> int:
        """Has no statement of its own."""

    @property
    def size(self) -> int: ...


class Real:
    def call(self) -> int:
        """One."""
        return inner()


def inner() -> int:
    def nested() -> int:
        return 1

    return nested()


async def never() -> None:
    raise ValueError
'''


def test_what_has_a_statement_is_a_function() -> None:
    names = [name for name, _ in functions_of(ast.parse(SOURCE))]
    assert names == ["Real.call", "inner", "inner.nested", "never"]


def test_a_call_is_noted_and_changes_nothing_else() -> None:
    ran: dict[str, None] = {}
    namespace: dict[str, object] = {_NAME: ran, "__name__": "m"}
    exec(compile(noting(SOURCE, "m.py"), "m.py", "exec"), namespace)  # noqa: S102 - what the import hook does
    real = namespace["Real"]
    assert isinstance(real, type) and ran == {}
    assert real().call() == 1
    assert list(ran) == ["m.py:Real.call", "m.py:inner", "m.py:inner.nested"]
    assert real.__dict__["call"].__doc__ == "One."


def test_the_lines_of_a_failure_stay_where_they_are() -> None:
    before = {name: node.body[-1].lineno for name, node in functions_of(ast.parse(SOURCE))}
    after = {name: node.body[-1].lineno for name, node in functions_of(noting(SOURCE, "m.py"))}
    assert after == before


@pytest.mark.parametrize("pattern", [pattern for patterns in MAY_STAY.values() for pattern in patterns])
def test_every_pattern_that_may_stay_unreached_concerns_a_function(pattern: str) -> None:
    assert any(fnmatchcase(function, pattern) for function in DEFINED)


def test_what_never_ran_is_told_by_file_with_counts() -> None:
    defined = ["broker/a.py:one", "broker/a.py:two", "storage/b.py:three", "storage/quorumlog_storage/edge/x.py:read"]
    ran = {"broker/a.py:one"}
    assert may_stay("storage/quorumlog_storage/edge/x.py:read")
    assert unreached(defined, ran) == ["broker/a.py:two", "storage/b.py:three"]
    assert round(share(defined, ran), 3) == 0.333
    lines = report(defined, ran)
    assert lines[:2] == ["broker/a.py: 1 of 2: two", "storage/b.py: 1 of 1: three"]
    assert lines[-1].startswith("1 of 3 functions ran, 33.3%")
