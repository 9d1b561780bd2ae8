"""Building a syntax tree survives garbage whose finalizers parse, as Hypothesis needs it (tests/syntax_trees.py)."""

from __future__ import annotations

import ast
import gc

from hypothesis import strategies as st

from tests import syntax_trees

SOURCE = "\n".join(f"def f{n}(a, b): return [a, (b, {{1: [2, (3,)]}})]" for n in range(200))


class Parses:
    """A cycle, so that only a collection ends it."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        ast.parse("x = (1, [2, {3: 4}])")


def test_no_collection_runs_inside_of_a_tree() -> None:
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(50)
    try:
        for _ in range(20):
            garbage = [Parses() for _ in range(30)]
            del garbage
            assert len(ast.parse(SOURCE).body) == 200
            assert repr(st.integers().map(lambda number: (number, [number]))).endswith(
                "(lambda number: (number, [number]))"
            )
    finally:
        gc.set_threshold(*before)
    assert gc.isenabled()


def test_everybody_gets_it() -> None:
    assert ast.parse is syntax_trees.parse


def test_trees_that_stay_are_left_out_of_all_collections() -> None:
    before = gc.get_freeze_count()
    with syntax_trees.that_stay():
        assert not gc.isenabled()
        kept = ast.parse(SOURCE)
    assert gc.isenabled() and gc.get_freeze_count() > before + len(kept.body)
