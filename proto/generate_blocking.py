"""Writes the blocking clients from the asynchronous ones: `python proto/generate_blocking.py [--check]`.

Each public method and property of the asynchronous class gets one of the same signature and docstring, unless the
blocking client's base has it by hand: what hands callbacks or records over between threads.
A coroutine is awaited on the clients' loop. What is no coroutine function asks nobody, so it is called where the caller
stands, unless `Client.on_loop` names it.
An argument that is an Iterable is read in the caller's thread: it may be a generator that calls a blocking client.

--check exits with 1 and the names of stale files. It compares the programs, not their layout.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Client(NamedTuple):
    """source: the module of the asynchronous class. base: the module and the class that is written by hand.

    init: the constructor, which says where its edges come from; empty: the base has it. doc: empty: the usual one.
    left_out: methods that a blocking client does not have. calling_back: coroutines that may call callbacks.
    on_loop: what is no coroutine function, and reads or changes what the loop changes.
    """

    target: str
    name: str
    source: str
    asynchronous: str
    init: str = ""
    base: tuple[str, str] = ("quorumlog.client.handover.loop", "Blocking")
    doc: str = ""
    left_out: frozenset[str] = frozenset()
    calling_back: frozenset[str] = frozenset()
    on_loop: frozenset[str] = frozenset()


CLIENTS = (
    Client(
        "quorumlog.client.blocking_admin",
        "Admin",
        "quorumlog.client.admin",
        "AsyncAdmin",
        "def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:\n"
        "    super().__init__(lambda: edge.admin(dict(config or {}), **options))\n",
        left_out=frozenset({"settings_requests"}),
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
    Client(
        "quorumlog.client.blocking_consumer",
        "Consumer",
        "quorumlog.client.consumer",
        "AsyncConsumer",
        base=("quorumlog.client.handover.consumer", "CallbackConsumer"),
        doc="See AsyncConsumer. Iterating gives records. One thread polls; `wakeup` and `close` may come from another "
        "one.\n\nconnect: makes its transport, on the clients' loop; None: `edge.make_transport`.",
        left_out=frozenset({"take_marked", "gave", "put_back", "take_chunk", "gave_chunk", "take_arrow"}),
        calling_back=frozenset({"assign", "assign_topic", "unsubscribe"}),
        on_loop=frozenset({"assignment", "subscription", "paused", "pause", "resume", "group_metadata", "metrics"}),
    ),
    Client(
        "quorumlog.client.blocking_producer",
        "Producer",
        "quorumlog.client.producer",
        "AsyncProducer",
        base=("quorumlog.client.handover.producer", "QueueingProducer"),
        doc="See AsyncProducer. `send` only appends to a queue; the loop takes many records from it at a time.",
        left_out=frozenset({"transactions", "check_sending", "fail_transaction", "prepared", "refused", "send_bytes"}),
        on_loop=frozenset({"metrics"}),
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
    needed = {"Any": "typing", "Mapping": "collections.abc"} if client.init else {}
    typed = {client.asynchronous: client.source}
    skipped = set(_by_hand(client)) | client.left_out
    methods: dict[str, str] = {}
    for module, cls in _line(Module(client.source), client.asynchronous):
        for node in cls.body:
            if not isinstance(node, Function) or node.name.startswith("_") or node.name in skipped | set(methods):
                continue
            methods[node.name] = _method(client, node)
            for homes, names in ((needed, _names(_defaults(node))), (typed, _names([node.args, node.returns]))):
                homes |= {name: home for name in names if (home := module.home(name)) is not None}
    runs_on_loop = any("on_loop(" in text for text in methods.values())
    needed |= {client.base[1]: client.base[0]}
    needed |= {"on_loop": "quorumlog.client.handover.loop", "partial": "functools"} if runs_on_loop else {}
    only_typed = {name: home for name, home in typed.items() if name not in needed}
    lines = [f'"""Written by `proto/generate_blocking.py` from `{client.asynchronous}`; change that one."""', ""]
    lines += ["from __future__ import annotations", "", "from typing import TYPE_CHECKING"]
    lines += ["from quorumlog.client import real_edges as edge"] if client.init else []
    lines += [f"from {home} import {name}" for name, home in sorted(needed.items())]
    lines += ["", "if TYPE_CHECKING:"]
    lines += [f"    from {home} import {name}" for name, home in sorted(only_typed.items())]
    doc = client.doc.replace("\n\n", "\n\n    ") or f"`{client.asynchronous}` without `await`."
    if "\n" in doc:
        doc += "\n    "
    lines += ["", "", f"class {client.name}({client.base[1]}):", f'    """{doc}"""', ""]
    lines += [f"    _client: {client.asynchronous}", "", _indented(client.init)]
    return "\n".join(lines + [_indented(text) for text in methods.values()])


def _by_hand(client: Client) -> Iterator[str]:
    """What the base, and what it stands on, has."""
    for _, cls in _line(Module(client.base[0]), client.base[1]):
        yield from (node.name for node in cls.body if isinstance(node, Function))


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


def _method(client: Client, node: Function) -> str:
    arguments = node.args
    given = [_given(argument) for argument in arguments.args[1:]]
    given += [f"{argument.arg}={_given(argument)}" for argument in arguments.kwonlyargs]
    assert not (arguments.vararg or arguments.kwarg or arguments.posonlyargs), node.name
    method = f"self._client.{node.name}"
    is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
    assert is_property == bool(node.decorator_list), node.name
    call = method if is_property else f"{method}({', '.join(given)})"
    if isinstance(node, ast.AsyncFunctionDef):
        call = f"self._run({call})" if node.name in client.calling_back else f"self._thread.run({call})"
    elif node.name in client.on_loop:
        read = f"lambda: {method}" if is_property else f"partial({', '.join([method, *given])})" if given else method
        call = f"self._thread.run(on_loop({read}))"
    assert node.returns is not None
    returns = ast.unparse(node.returns)
    lines = ["@property"] if is_property else []
    lines.append(f"def {node.name}({ast.unparse(arguments)}) -> {returns}:")
    if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
        lines.append(f'    """{node.body[0].value.value}"""')
    return "\n".join([*lines, f"    {call}" if returns == "None" else f"    return {call}", ""])


def _given(argument: ast.arg) -> str:
    kind = ast.unparse(argument.annotation) if argument.annotation else ""
    if not kind.startswith("Iterable["):
        return argument.arg
    read = f"list({argument.arg})"
    return f"{read} if {argument.arg} is not None else None" if kind.endswith("| None") else read


def _defaults(node: Function) -> list[ast.expr | None]:
    """Evaluated where the method is defined; its other names are only types."""
    return [*node.args.defaults, *node.args.kw_defaults]


def _names(parts: Iterable[ast.AST | None]) -> set[str]:
    return {one.id for part in parts if part for one in ast.walk(part) if isinstance(one, ast.Name)}


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
