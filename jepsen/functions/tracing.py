"""Notes which production functions run, at the cost of one store into a dict for each call.

An import hook compiles the modules of `PACKAGES` with one more statement at the start of each function. So `install`
comes before the first import of any of them. Works in every release of Python; a profiler would make a simulation many
times slower.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from jepsen.functions.defined import FOLDERS, first_statement, functions_of
from jepsen.tree import ROOT

PACKAGES = tuple(f"quorumlog_{folder}" for folder in FOLDERS)
_NAME = "_functions_that_ran"  # a builtin of this process: modules need no import for it


def install() -> dict[str, None]:
    """Returns what fills while functions run: their names, in the order of their first calls."""
    loaded = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    assert not loaded, f"imported before the hook: {loaded[:3]}"
    ran: dict[str, None] = {}
    setattr(builtins, _NAME, ran)
    sys.meta_path.insert(0, _Finder())
    return ran


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Never from a cache of bytecode, and never written to one."""
        path = self.get_filename(fullname)
        return compile(noting(self.get_data(path).decode(), _relative(path)), path, "exec", dont_inherit=True)


def noting(source: str, path: str) -> ast.Module:
    """The module's tree, with a statement at the start of each function that notes its name. Lines stay as they are."""
    tree = ast.parse(source)
    for name, node in list(functions_of(tree)):
        (note,) = ast.parse(f"{_NAME}[{f'{path}:{name}'!r}] = None").body
        at = first_statement(node)
        for inner in ast.walk(note):
            ast.copy_location(inner, node.body[at])
        node.body.insert(at, note)
    return tree


def _relative(path: str) -> str:
    return Path(path).resolve().relative_to(ROOT).as_posix()
