"""Writes the blocking clients of admin and joint groups: `python proto/generate_blocking.py [--check]`.

Each public method of the asynchronous class, its bases' too, gets a method of the same signature and docstring that
waits for it on the clients' loop. What is no coroutine function asks nobody, so it is called where the caller stands.
What is decorated, a property, is left out.
An argument that is an Iterable is read in the caller's thread: it may be a generator that calls a blocking client.

--check exits with 1 and the names of stale files. It compares the programs, not their layout.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
INHERITED = {"close"}  # `Blocking` has it by hand
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Client(NamedTuple):
    """source: the module of the asynchronous class. init: the constructor, which says where its edges come from."""

    target: str
    name: str
    source: str
    asynchronous: str
    init: str


CLIENTS = (
    Client(
        "quorumlog.client.blocking_admin",
        "Admin",
        "quorumlog.client.admin",
        "AsyncAdmin",
        "def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:\n"
        "    super().__init__(lambda: edge.admin(dict(config or {}), **options))\n",
    ),
    Client(
        "quorumlog.client.blocking_joint",
        "Joint",
        "quorumlog.client.joint",
        "AsyncJoint",
        "def __init__(self, config: Mapping[str, Any], *, connect: edge.Connect | None = None) -> None:\n"
        '    """connect: makes its transport; None: `edge.make_transport`."""\n'
        "    super().__init__(lambda: edge.joint(dict(config), connect=connect))\n",
    ),
)


class Module:
    """A module's source: its classes, and where each of its names is imported from."""

    def __init__(self, name: str) -> None:
        self.name = name
        tree = ast.parse(_path(name).read_text())
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self._from: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self._from |= {alias.name: node.module for alias in node.names}
        self._own = set(self.classes)
        for statement in tree.body:
            if isinstance(statement, ast.Assign):
                self._own |= {target.id for target in statement.targets if isinstance(target, ast.Name)}

    def home(self, name: str) -> str | None:
        """The module to import this name from. None: a builtin."""
        return self.name if name in self._own else self._from.get(name)


def generated(client: Client) -> str:
    """The blocking module's text, not formatted."""
    homes = {"Any": "typing", "Mapping": "collections.abc", client.asynchronous: client.source}
    methods: dict[str, str] = {}
    for module, cls in _line(Module(client.source), client.asynchronous):
        for node in cls.body:
            if not isinstance(node, Function) or node.decorator_list:
                continue
            if node.name.startswith("_") or node.name in INHERITED | set(methods):
                continue
            methods[node.name] = _method(node)
            for name in _names(node):
                home = module.home(name)
                if home is not None:
                    homes[name] = home
    lines = [f'"""Written by `proto/generate_blocking.py` from `{client.asynchronous}`; change that one."""', ""]
    lines += ["from __future__ import annotations", "", "from quorumlog.client import real_edges as edge"]
    lines += ["from quorumlog.client.handover.loop import Blocking"]
    lines += [f"from {home} import {name}" for name, home in sorted(homes.items())]
    lines += ["", "", f"class {client.name}(Blocking):", f'    """`{client.asynchronous}` without `await`."""', ""]
    lines += [f"    _client: {client.asynchronous}", "", _indented(client.init)]
    return "\n".join(lines + [_indented(text) for text in methods.values()])


def stale(client: Client) -> bool:
    path = _path(client.target)
    return not path.exists() or ast.dump(ast.parse(path.read_text())) != ast.dump(ast.parse(_formatted(client)))


def _line(module: Module, name: str) -> Iterator[tuple[Module, ast.ClassDef]]:
    """The class itself, then its bases in the order of their methods."""
    cls = module.classes[name]
    yield module, cls
    for base in cls.bases:
        assert isinstance(base, ast.Name)
        home = module.home(base.id)
        if home is not None and home.startswith("quorumlog."):
            yield from _line(module if home == module.name else Module(home), base.id)


def _method(node: Function) -> str:
    arguments = node.args
    given = [_given(argument) for argument in arguments.args[1:]]
    given += [f"{argument.arg}={_given(argument)}" for argument in arguments.kwonlyargs]
    assert not (arguments.vararg or arguments.kwarg or arguments.posonlyargs), node.name
    call = f"self._client.{node.name}({', '.join(given)})"
    if isinstance(node, ast.AsyncFunctionDef):
        call = f"self._thread.run({call})"
    assert node.returns is not None
    returns = ast.unparse(node.returns)
    lines = [f"def {node.name}({ast.unparse(arguments)}) -> {returns}:"]
    if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
        lines.append(f'    """{node.body[0].value.value}"""')
    return "\n".join([*lines, f"    {call}" if returns == "None" else f"    return {call}", ""])


def _given(argument: ast.arg) -> str:
    kind = ast.unparse(argument.annotation) if argument.annotation else ""
    if not kind.startswith("Iterable["):
        return argument.arg
    read = f"list({argument.arg})"
    return f"{read} if {argument.arg} is not None else None" if kind.endswith("| None") else read


def _names(node: Function) -> set[str]:
    """That the signature needs."""
    parts: list[ast.AST] = [node.args]
    parts += [node.returns] if node.returns else []
    return {one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)}


def _indented(text: str) -> str:
    """Of a method. A docstring's further lines are indented in its source already."""
    in_doc, lines = False, []
    for line in text.split("\n"):
        lines.append(line if in_doc or not line else "    " + line)
        if line.count('"""') == 1:
            in_doc = not in_doc
    return "\n".join(lines)


def _formatted(client: Client) -> str:
    """As ruff sorts imports and lays out code for the file's place."""
    text = generated(client)
    name = str(_path(client.target))
    for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"],
            input=text, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT,
        )  # fmt: skip
        text = done.stdout
    return text


def _path(module: str) -> Path:
    return ROOT / (module.replace(".", "/") + ".py")


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the blocking clients from those of asyncio.")
    parser.add_argument("--check", action="store_true", help="only tell which files are stale")
    if parser.parse_args().check:
        old = [client.target for client in CLIENTS if stale(client)]
        for target in old:
            print(f"stale: {target}; run `./dev proto`")
        return 1 if old else 0
    for client in CLIENTS:
        _path(client.target).write_text(_formatted(client))
    return 0


if __name__ == "__main__":
    sys.exit(main())
