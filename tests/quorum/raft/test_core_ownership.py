"""Which code may change the core: a test over the syntax trees of the package and of its driver.

- In `quorum/quorumlog_quorum/raft` an object is changed only by its own methods: no module assigns to another object's
  attribute.
- The core and its log are changed only through the methods of `Core`.
- The shells around the core import `quorumlog_quorum.raft` and nothing inside it. Of `Raft` they call `step` and
  `deadline_ms`; its core they only read: they call no method of it but those that answer a question.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import quorumlog_quorum.raft

PACKAGE = Path(quorumlog_quorum.raft.__file__).parent
MODULES = sorted(PACKAGE.glob("*.py"))
SHELLS = [PACKAGE.parent / "node" / f"{name}.py" for name in ("driver", "raft_loop", "announcements", "peers")]
MUTATORS = frozenset(
    {"append", "appendleft", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove"}
    | {"setdefault", "sort", "update", "__setattr__", "__setitem__"}
)
LOG_MOVES = frozenset({"accept", "on_written", "on_synced", "truncate", "on_truncated"}) | {
    "add_snapshot",
    "forget_snapshot",
    "raise_start",
    "restart_at",
}
QUESTIONS = frozenset({"endpoint_of", "voter_records_at"})  # methods of the core that change nothing


def path_of(node: ast.expr) -> list[str]:
    """`core.role.parked[3]` -> ["core", "role", "parked"]; a call or another expression begins with ""."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=value, attr=attr):
            return [*path_of(value), attr]
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return path_of(value)
        case _:
            return [""]


def targets(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=found) | ast.Delete(targets=found):
            wanted = list(found)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.For(target=target):
            wanted = [target]
        case _:
            return
    while wanted:
        target = wanted.pop()
        if isinstance(target, ast.Tuple | ast.List):
            wanted += target.elts
        else:
            yield target


def foreign_changes(source: str) -> list[str]:
    """Lines that change an attribute of an object other than `self`, or something inside it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        changed = [path_of(target) for target in targets(node)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            changed.append(path_of(node.func.value))
        for path in changed:
            allowed = len(path) == 1 or (path[0] == "self" and len(path) == 2)
            if not allowed:
                found.append(f"{node.lineno}: {'.'.join(path)}")  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("module", [*MODULES, *SHELLS], ids=lambda path: path.stem)
def test_an_object_is_changed_only_by_its_own_methods(module: Path) -> None:
    assert foreign_changes(module.read_text()) == []


CHANGES = [
    "core.epoch = 1",
    "core.role.parked[0] = None",
    "a, core.leader_id = 1, None",
    "core.epoch += 1",
    "del role.unacked[1]",
    "core._effects.append(1)",
    "self.core.epoch = 1",
    "core.role.votes.granted.update({})",
]


@pytest.mark.parametrize("line", CHANGES)
def test_the_check_notices(line: str) -> None:
    assert len(foreign_changes(line)) == 1


@pytest.mark.parametrize("line", ["self.epoch = 1", "values = []\nvalues.append(1)", "self._effects.append(1)"])
def test_the_check_allows(line: str) -> None:
    assert foreign_changes(line) == []


@pytest.mark.parametrize("module", [path for path in MODULES if path.stem != "core"], ids=lambda path: path.stem)
def test_only_the_core_moves_its_log(module: Path) -> None:
    calls = [node.func for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    moves = [call for call in calls if isinstance(call, ast.Attribute) and call.attr in LOG_MOVES]
    assert [path for call in moves if (path := path_of(call))[-2] == "log"] == []


@pytest.mark.parametrize("module", SHELLS, ids=lambda path: path.stem)
def test_the_shells_know_the_public_names_alone(module: Path) -> None:
    tree = ast.parse(module.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in imports if (node.module or "").startswith("quorumlog_quorum.raft.")]
    names = {alias.name for node in imports if node.module == "quorumlog_quorum.raft" for alias in node.names}
    assert names <= set(quorumlog_quorum.raft.__all__)


def calls_of_cores(source: str) -> list[str]:
    """Methods of a core, or of anything inside it, that are called."""
    calls = [path_of(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [path[-1] for path in calls if {"core", "_core"} & set(path[:-1])]


@pytest.mark.parametrize("module", SHELLS, ids=lambda path: path.stem)
def test_the_shells_let_raft_step_and_read_its_core(module: Path) -> None:
    source = module.read_text()
    attributes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    used = {path[-1] for node in attributes if len(path := path_of(node)) > 1 and path[-2] in ("raft", "_raft")}
    assert used <= {"core", "step", "deadline_ms"}
    assert set(calls_of_cores(source)) <= QUESTIONS


def test_the_check_of_calls_notices() -> None:
    line = "self._raft.core.become(role, epoch=1); driver.core.log.truncate(3); core.outbox.take(); core.endpoint_of(1)"
    assert calls_of_cores(line) == ["become", "truncate", "take", "endpoint_of"]


def test_the_public_names_are_all_there() -> None:
    assert [name for name in quorumlog_quorum.raft.__all__ if not hasattr(quorumlog_quorum.raft, name)] == []
