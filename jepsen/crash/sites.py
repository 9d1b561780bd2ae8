"""Every place in the production code that calls a method of `quorumlog_storage.files.disk`'s Disk or File, found from
the syntax tree.

A call counts by its receiver:

1. A receiver whose last name is one of `DISKS` is a Disk, of `FILES` a File. What a Disk's `open` returns, and what a
   method declared `-> File` returns, is a File.
2. `write_fully` is the one place that calls `pwritev`; whoever calls it is the site.
3. Any other call of a method that has the name of one of theirs is ambiguous. It must stand in `OTHERS`, with what
   its receiver is. So a new way to hold a Disk or a File cannot slip through.
4. A Disk's or File's method that is not called where it is named (a bound method) is ambiguous, too.

Looked at is every file of storage/, and each file of the other packages that names quorumlog_storage.files.disk or
something called a disk: the others can hold none. `quorumlog_storage/edge` implements the two Protocols and is left
out. So is `quorumlog_storage/audit`: it reads the files of stopped nodes, and a crash of it leaves what was there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jepsen.tree import ROOT

FOLDERS = ("storage", "quorum", "broker", "server", "cli", "console", "quorumlog")
SEAM = "storage/quorumlog_storage/files/disk.py"
SEAM_MODULE = "quorumlog_storage.files.disk"
DISKS = ("disk", "_disk")
FILES = ("file", "_file", "source", "target", "copy")
WRITE_FULLY = "write_fully"

OTHERS: dict[str, str] = {
    "picker.close": "what picks free ports",
    "space.total_bytes": "what was last known of a directory's space",
    "queue.space.total_bytes": "what was last known of a directory's space",
    "Log.open": "a log, from its directory",
    "LockedDirectory.open": "a log directory",
    "CheckpointedLog.open": "a log with its recovery point, from its directory",
    "self.log.sync": "a log",
    "segment.log.rename": "a segment's log file, by its handle",
    "segment.rename": "a whole segment, whose files are renamed by their handles",
    "self._directory.open": "the metadata log's directory",
    "entry.close": "a log directory",
    "one.entry.close": "a log directory",
    "found.entry.close": "a log directory",
    "self._directory_start.open": "the directories of a node that starts",
    "log.close": "a log",
    "self.log.close": "a log",
    "self._log.close": "a log",
    "log.sync": "a log",
    "log.log.sync": "a log",
    "held.log.sync": "a log",
    "self.held.close": "a partition's log",
    "reader.close": "the reader of a snapshot",
    "self.sync": "a log",
    "log.begin_sync": "a log",
    "self.unsynced.begin_sync": "what a log has not synced yet",
    "segment.log.begin_sync": "a segment's log file, which is a LogFile",
    "self.producers.sync": "a log's producers",
    "producers.sync": "a log's producers",
    "self._handle.rename": "the descriptor of a segment's file",
    "self._handle.begin_sync": "the descriptor of a segment's file",
    "self._handle.reserve": "the descriptor of a segment's file",
    "self._handle.sync": "the descriptor of a segment's file",
    "self.log.rename": "a segment's log file, which is a LogFile",
    "cache.rename": "an index",
    "worker.close": "a directory's worker",
    "self._output.close": "what the cleaner has written, a segment",
    "output.rename": "likewise",
    "held.close": "a partition's log",
    "self.close": "a log directory",
    "place.exists": "a path of a command",
    "path.exists": "a path of a command",
    "path.read_bytes": "a path of a command",
    "directory.exists": "a path of a command",
    "ReadOnlyDisk().open": "a command's reading: this disk changes nothing",
    "self._workers.close": "a node's workers",
    "directories.close": "a node's log directories",
    "server.close": "a listener",
    "self._nursery.close": "tasks",
    "self._peers.close": "connections",
    "self._announcer_channel.close": "the connection of the announcer to the controller",
    "self.audit_log.close": "lines of the audit log",
}
FIELDS = ("size",)  # also a plain field of many things: only a call of it counts


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """One call in the text. file: from the root. line: where the call begins, counted from 1; until: where it ends.

    method: of the Disk or File, or `write_fully`. function: the one that holds the call, with its class. creates: an
    `open` that may make the file.
    """

    file: str
    line: int
    method: str
    until: int = field(compare=False)
    function: str = field(compare=False, default="")
    creates: bool = field(compare=False, default=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.method}"


@dataclass(frozen=True, slots=True)
class Sites:
    """found: sorted. ambiguous: `file:line: receiver.method` of what rule 3 and 4 want explained."""

    found: tuple[Site, ...]
    ambiguous: tuple[str, ...]

    def at(self, file: str, line: int, method: str) -> Site | None:
        """The site of a call that is under way. The innermost one, where a call lies in another call's lines."""
        fits = [s for s in self.found if s.file == file and s.method == method and s.line <= line <= s.until]
        return min(fits, key=lambda site: site.until - site.line, default=None)


@cache
def production_sites() -> Sites:
    return find_sites(ROOT)


def find_sites(root: Path) -> Sites:
    """root: of a tree that holds quorumlog_storage/files/disk.py and what calls it."""
    methods = protocol_methods((root / SEAM).read_text())
    found: list[Site] = []
    ambiguous: list[str] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if name == SEAM or name.startswith(("storage/quorumlog_storage/edge/", "storage/quorumlog_storage/audit/")):
                continue
            text = path.read_text()
            is_of_the_engine = folder == SEAM.partition("/")[0]
            if not is_of_the_engine and not any(word in text for word in (SEAM_MODULE, *DISKS)):
                continue  # most files: not worth a syntax tree
            tree = ast.parse(text, filename=name)
            if is_of_the_engine or _may_hold_a_disk(tree):
                module = _Module(name, tree, methods)
                found.extend(module.sites())
                ambiguous.extend(module.ambiguous())
    return Sites(tuple(sorted(found)), tuple(ambiguous))


def protocol_methods(seam: str) -> dict[str, frozenset[str]]:
    """The names of the methods of Disk and of File, from the text of quorumlog_storage/files/disk.py."""
    classes = [node for node in ast.parse(seam).body if isinstance(node, ast.ClassDef)]
    return {
        one.name: frozenset(item.name for item in one.body if isinstance(item, ast.FunctionDef))
        for one in classes
        if one.name in ("Disk", "File")
    }


def _may_hold_a_disk(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == SEAM_MODULE:
            return True
        if isinstance(node, ast.Attribute) and node.attr in DISKS:
            return True
        if isinstance(node, ast.Name) and node.id in DISKS:
            return True
    return False


class _Module:
    """The calls of one file."""

    def __init__(self, file: str, tree: ast.AST, methods: dict[str, frozenset[str]]) -> None:
        self._file, self._methods = file, methods
        nodes = list(ast.walk(tree))
        self._calls = [node for node in nodes if isinstance(node, ast.Call)]
        self._called = [node.func for node in self._calls]
        self._named = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)]
        blocks = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        self._blocks = [node for node in nodes if isinstance(node, blocks)]
        self._giving_files = [
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id == "File"
        ]

    def sites(self) -> Iterator[Site]:
        for call in self._calls:
            method = self._method(call.func)
            if method is not None:
                yield self._site(call, method)

    def ambiguous(self) -> Iterator[str]:
        names = self._methods["Disk"] | self._methods["File"]
        for node in self._named:
            called = any(node is func for func in self._called)
            if node.attr not in names or (node.attr in FIELDS and not called):
                continue
            text = f"{ast.unparse(node.value)}.{node.attr}"
            is_site = called and self._method(node) is not None
            if not is_site and text not in OTHERS:
                yield f"{self._file}:{node.lineno}: {text}"

    def _site(self, call: ast.Call, method: str) -> Site:
        creates = any(keyword.arg == "create" for keyword in call.keywords)
        begins = call.func.end_lineno or call.lineno
        return Site(self._file, begins, method, call.end_lineno or begins, self._function_at(begins), creates)

    def _function_at(self, line: int) -> str:
        """The names of the classes and functions around a line, joined by dots."""
        around = [one for one in self._blocks if one.lineno <= line <= (one.end_lineno or one.lineno)]
        return ".".join(one.name for one in sorted(around, key=lambda one: one.lineno))

    def _method(self, func: ast.expr) -> str | None:
        """The method that a call of `func` would be, if it is one of a Disk or a File."""
        if isinstance(func, ast.Name):
            return WRITE_FULLY if func.id == WRITE_FULLY else None
        if not isinstance(func, ast.Attribute):
            return None
        kind = self._kind(func.value)
        return func.attr if kind is not None and func.attr in self._methods[kind] else None

    def _kind(self, receiver: ast.expr) -> str | None:
        """Which of the two the receiver of a call is, if it is one of them."""
        if isinstance(receiver, ast.Call):
            func = receiver.func
            gives = isinstance(func, ast.Attribute) and func.attr in self._giving_files
            return "File" if gives or self._method(func) == "open" else None
        name = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", None)
        return "Disk" if name in DISKS else "File" if name in FILES else None
