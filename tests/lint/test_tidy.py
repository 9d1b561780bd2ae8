"""Taste that no off-the-shelf linter holds. Each rule names the places that break it, as `path:line: what`."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import syntax_trees

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "quorumlog",
    "storage",
    "quorum",
    "broker",
    "server",
    "cli",
    "console",
    "jepsen",
    "bench",
    "applications",
    "differential",
)
SPEAKERS = ("cli/", "server/", "bench/", "jepsen/", "applications/", "differential/")  # may print
EDGES = ("bench/", "jepsen/live/", "applications/", "differential/")
CORES = (
    "storage/",
    "quorum/quorumlog_quorum/raft/",
    "quorum/quorumlog_quorum/metadata/",
    "quorum/quorumlog_quorum/controller/",
    "quorumlog/records/",
    "broker/quorumlog_broker/partition",
)
MAX_LINES = 70  # of a function
LONG_FOR_A_REASON = {
    "quorumlog/records/validation/record_walk.py walk_usual": "every record passes: a call costs more than the line",
    "quorumlog/wire/protocol/apis.py _rows": "a table of APIs",
    "quorumlog/wire/protocol/apis.py _group_rows": "a table of APIs",
    "storage/quorumlog_storage/cleaning/key_kernels.py look_rows": "one kernel for numba",
}
PRODUCT = ("quorumlog", "storage/", "quorum/", "broker/", "server/", "cli/", "console/")  # what is installed
RUNNERS = ("eval", "exec")  # and of these modules all that reads
UNSAFE_READERS = {
    "pickle": ("load", "loads", "Unpickler"),
    "marshal": ("load", "loads"),
    "shelve": ("open",),
    "yaml": ("load",),
}
SECRET_KEEPERS = ("quorumlog/security/", "quorumlog/proof/")
SECRET = re.compile(
    r"(password|secret|salted|stored_key|server_key|client_key|proof|(server|client)_signature|token|mac|digest|reveal)$"
)
LOG_CHANGES = ("begin_epoch", "truncate_to", "truncate_fully", "advance_start", "sync")
SET_ORDERED = ("TaskGroup", "wait", "as_completed", "gather")  # of asyncio: they iterate sets, or hide the order

Finding = tuple[int, str]  # line, counted from 1; what is wrong there


class Module:
    """One file of ours. path: relative to the root, with slashes."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(ROOT).as_posix()
        self.text = path.read_text()
        self.tree = ast.parse(self.text, filename=self.path)

    @property
    def is_generated(self) -> bool:
        return "Written by `./dev proto`" in (ast.get_docstring(self.tree) or "")

    @property
    def is_edge(self) -> bool:
        """Touches the machine, so it never runs in a simulation."""
        return "/edge/" in self.path or self.path.startswith(EDGES)

    def all(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        return (node for node in ast.walk(self.tree) if isinstance(node, kinds))


@functools.cache
def modules() -> tuple[Module, ...]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    with syntax_trees.that_stay():
        return tuple(Module(path) for path in paths if "rpc/pb/" not in path.as_posix())


def is_call_of(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def unordered_tasks(module: Module) -> Iterator[Finding]:
    """Tasks are awaited in an order of ours: quorumlog/nursery.py."""
    if module.is_edge:
        return
    for node in module.all(ast.Attribute, ast.ImportFrom):
        if isinstance(node, ast.Attribute):
            if node.attr in SET_ORDERED and isinstance(node.value, ast.Name) and node.value.id == "asyncio":
                yield node.lineno, f"asyncio.{node.attr}: use the nursery"
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            for name in node.names:
                if name.name in SET_ORDERED:
                    yield node.lineno, f"asyncio.{name.name}: use the nursery"


def iterated_sets(module: Module) -> Iterator[Finding]:
    """The order of a set is that of hashes or addresses: sort it first."""
    for node in module.all(ast.For, ast.AsyncFor, ast.comprehension, ast.Call):
        source = node.iter if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) else None
        if isinstance(node, ast.Call) and is_call_of(node, "list", "tuple", "enumerate") and node.args:
            source = node.args[0]
        if source is not None and (isinstance(source, ast.Set | ast.SetComp) or is_call_of(source, "set", "frozenset")):
            yield source.lineno, "iterates a set: sort it, or use dict.fromkeys"


def bare_excepts(module: Module) -> Iterator[Finding]:
    for node in module.all(ast.ExceptHandler):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "bare except: name what may happen"


def long_functions(module: Module) -> Iterator[Finding]:
    """A function that outgrows this has a second idea in it. A file may have any length, as long as it has one idea."""
    for node in module.all(ast.FunctionDef, ast.AsyncFunctionDef):
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        count = (node.end_lineno or node.lineno) - node.lineno + 1
        if count > MAX_LINES and f"{module.path} {node.name}" not in LONG_FOR_A_REASON:
            yield node.lineno, f"{node.name} has {count} lines, more than {MAX_LINES}"


def missing_docstrings(module: Module) -> Iterator[Finding]:
    name = Path(module.path).name
    if (name == "__init__.py" or not name.startswith("_")) and not ast.get_docstring(module.tree):
        yield 1, "a module or a package opens with what it is"


def prints(module: Module) -> Iterator[Finding]:
    if module.path.startswith(SPEAKERS):
        return
    for node in module.all(ast.Call):
        if is_call_of(node, "print") and isinstance(node, ast.Call):
            yield node.lineno, "print: only a command prints"


def address_dependent(module: Module) -> Iterator[Finding]:
    """`id` and `hash` differ from process to process, and so would a replay."""
    if not module.path.startswith(CORES):
        return
    for node in module.all(ast.Call):
        if is_call_of(node, "id", "hash") and isinstance(node, ast.Call):
            yield node.lineno, "id() or hash() in a core"


def missing_future_import(module: Module) -> Iterator[Finding]:
    if module.tree.body[1:] and "from __future__ import annotations" not in module.text:
        yield 1, "no `from __future__ import annotations`"


def log_choreography(module: Module) -> Iterator[Finding]:
    """The broker changes a log through PartitionLog only: each change is one call that survives a crash."""
    if not module.path.startswith("broker/"):
        return
    for node in module.all(ast.Attribute):
        if not isinstance(node, ast.Attribute):
            continue
        is_assigned = isinstance(node.ctx, ast.Store) and node.attr in ("config", "has_readers")
        is_called = node.attr in LOG_CHANGES and not isinstance(node.ctx, ast.Store)
        if (is_called and not _is_partition_log(node.value)) or (is_assigned and _is_log(node.value)):
            yield node.lineno, f"{node.attr} of a Log: call PartitionLog"


def compared_secrets(module: Module) -> Iterator[Finding]:
    """`==` takes longer the more bytes agree, and tells a peer so (CVE-2021-38153): use hmac.compare_digest."""
    if not module.path.startswith(SECRET_KEEPERS):
        return
    for node in module.all(ast.Compare):
        if not isinstance(node, ast.Compare) or not any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
            continue
        for side in (node.left, *node.comparators):
            if SECRET.search(_last_name(side)):
                yield node.lineno, f"{_last_name(side)} is compared by == or !=: use hmac.compare_digest"


def code_from_data(module: Module) -> Iterator[Finding]:
    """What a peer or a file says is never code: these run what they read."""
    if not module.path.startswith(PRODUCT):
        return
    for node in module.all(ast.Name, ast.Attribute, ast.ImportFrom):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in RUNNERS:
                yield node.lineno, f"{name} runs text"
            case ast.Attribute(value=ast.Name(id=of), attr=name) if name in UNSAFE_READERS.get(of, ()):
                yield node.lineno, f"{of}.{name} runs what it reads"
            case ast.ImportFrom(module=str(of), names=names) if of in UNSAFE_READERS:
                yield from ((node.lineno, f"{of}.{one.name}: name the module") for one in names)


def _is_partition_log(value: ast.expr) -> bool:
    return _last_name(value) in ("partition_log", "_files_of")


def _is_log(value: ast.expr) -> bool:
    return _last_name(value) in ("log", "_log_of")


def _last_name(value: ast.expr) -> str:
    """The variable, attribute or function that an expression ends with."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _last_name(function)
        case _:
            return ""


RULES = [
    unordered_tasks, iterated_sets, bare_excepts, long_functions, missing_docstrings, prints, address_dependent,
    missing_future_import, log_choreography, compared_secrets, code_from_data,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=[rule.__name__ for rule in RULES])
def test_tidy(rule: Callable[[Module], Iterator[Finding]]) -> None:
    found = [f"{module.path}:{line}: {what}" for module in modules() for line, what in rule(module)]
    assert not found, "\n" + "\n".join(found)


# The rules themselves: what each must find, and what it must leave alone.
BAD = [
    (unordered_tasks, "import asyncio\nasync def f(): await asyncio.gather()"),
    (unordered_tasks, "from asyncio import TaskGroup"),
    (iterated_sets, "for x in {1, 2}: pass"),
    (iterated_sets, "y = [x for x in set(z)]"),
    (iterated_sets, "y = list(frozenset(z))"),
    (bare_excepts, "try: pass\nexcept: pass"),
    (long_functions, "def f():\n" + "    pass\n" * 70),
    (prints, "print(1)"),
    (address_dependent, "key = id(x)"),
    (log_choreography, "log.begin_epoch(3)"),
    (log_choreography, "partial(_log_of(replica).truncate_to, 3)"),
    (log_choreography, "replica.partition_log.log.sync()"),
    (log_choreography, "replica.log.config = config"),
    (compared_secrets, "right = given == self.stored_key"),
    (compared_secrets, "right = keys.client_proof != proof"),
    (compared_secrets, "right = hmac.digest(key, text, 'sha256') == given"),
    (compared_secrets, "right = b'' == password.reveal()"),
    (code_from_data, "found = eval(text)"),
    (code_from_data, "import pickle\nfound = pickle.loads(data)"),
    (code_from_data, "read = pickle.Unpickler"),
    (code_from_data, "import yaml\nfound = yaml.load(text)"),
    (code_from_data, "from marshal import loads"),
]
GOOD = [
    (unordered_tasks, "import asyncio\nasync def f(): await asyncio.wait_for(g(), 1)"),
    (iterated_sets, "for x in sorted({1, 2}): pass"),
    (iterated_sets, "y = 1 in {1, 2}"),
    (bare_excepts, "try: pass\nexcept OSError: pass"),
    (long_functions, "def f():\n" + "    pass\n" * 69 + "x = 1\n" * 400),
    (address_dependent, "key = x.id()"),
    (log_choreography, "partial(_files_of(replica).truncate_to, 3)"),
    (log_choreography, "replica.config = config"),
    (compared_secrets, "right = len(proof) == len(stored_key)"),
    (compared_secrets, "right = hmac.compare_digest(given, self.stored_key)"),
    (compared_secrets, "right = password is None or key.text == ';'"),
    (code_from_data, "failed = (OSError, pickle.PickleError)"),
    (code_from_data, "found = re.compile(pattern)"),
]


def module_of(text: str, path: str) -> Module:
    module = Module.__new__(Module)
    module.path, module.text, module.tree = path, text, ast.parse(text)
    return module


def example_path(rule: Callable[[Module], Iterator[Finding]]) -> str:
    if rule is compared_secrets:
        return "quorumlog/security/example.py"
    return "broker/example.py" if rule is log_choreography else "storage/example.py"


@pytest.mark.parametrize(("rule", "text"), BAD)
def test_a_rule_finds_what_it_is_for(rule: Callable[[Module], Iterator[Finding]], text: str) -> None:
    assert list(rule(module_of(text, example_path(rule))))


@pytest.mark.parametrize(("rule", "text"), GOOD)
def test_a_rule_leaves_the_rest_alone(rule: Callable[[Module], Iterator[Finding]], text: str) -> None:
    assert not list(rule(module_of(text, example_path(rule))))
