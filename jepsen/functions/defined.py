"""The functions and methods of a package, from its syntax trees. Pure but for reading source files.

A function is named `path:qualified.name`, with a path from the root of the tree. What has no statement of its own (a
method of a Protocol, an overload) is none. Nested functions count; lambdas do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from jepsen.tree import ROOT

FOLDERS = ("broker", "quorum", "storage")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def defined_functions(root: Path = ROOT) -> list[str]:
    """Of all `FOLDERS`, sorted by path, in each file in order of the source."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            found += [f"{name}:{function}" for function, _ in functions_of(ast.parse(path.read_text()))]
    return found


def functions_of(tree: ast.AST, above: str = "") -> Iterator[tuple[str, Function]]:
    """(qualified name, node) of every function that has a statement."""
    for node in ast.iter_child_nodes(tree):
        inside = above
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{above}{node.name}"
            if not isinstance(node, ast.ClassDef) and first_statement(node) < len(node.body):
                yield inside, node
            inside += "."
        yield from functions_of(node, inside)


def first_statement(node: Function) -> int:
    """Index of the first statement that does anything; the length of the body if there is none."""
    for index, statement in enumerate(node.body):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and not isinstance(statement, ast.Pass):
            return index
    return len(node.body)
