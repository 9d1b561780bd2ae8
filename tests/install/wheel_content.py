"""What is in a wheel: names, modules, entry points, requirements, and what its modules import."""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser
from dataclasses import dataclass
from email.parser import Parser
from functools import cached_property
from pathlib import Path

BY_NAME = ("import_module", "find_spec", "__import__")  # functions that take a module by its name


@dataclass(frozen=True)
class Wheel:
    """path: of the file."""

    path: Path

    @cached_property
    def entries(self) -> tuple[str, ...]:
        with zipfile.ZipFile(self.path) as file:
            return tuple(file.namelist())

    def text(self, entry: str) -> str:
        """Raises KeyError."""
        with zipfile.ZipFile(self.path) as file:
            return file.read(entry).decode()

    @cached_property
    def metadata_folder(self) -> str:
        (found,) = {entry.partition("/")[0] for entry in self.entries if ".dist-info/" in entry}
        return found

    @cached_property
    def sources(self) -> dict[str, str]:
        """The text of each module, by its path."""
        with zipfile.ZipFile(self.path) as file:
            return {entry: file.read(entry).decode() for entry in self.entries if entry.endswith(".py")}

    @cached_property
    def imports(self) -> dict[str, dict[str, int]]:
        """By the path of a module, what `imports_of` finds in it."""
        return {entry: imports_of(text) for entry, text in self.sources.items()}

    def entry_points(self) -> dict[str, dict[str, str]]:
        """By group: name and what it names."""
        parser = ConfigParser(delimiters="=")
        parser.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their case
        parser.read_string(self.text(f"{self.metadata_folder}/entry_points.txt"))
        return {group: dict(parser[group]) for group in parser.sections()}

    def requirements(self) -> dict[str, set[str]]:
        """Names of distributions by the extra that asks for them; those of no extra under `""`.

        An extra that names another extra of ours has what that one has.
        """
        header = Parser().parsestr(self.text(f"{self.metadata_folder}/METADATA"))
        found: dict[str, set[str]] = {"": set(), **{extra: set() for extra in header.get_all("Provides-Extra", [])}}
        nested: list[tuple[str, str]] = []
        for line in header.get_all("Requires-Dist", []):
            name, others, extra = requirement_of(line)
            if name == "quorumlog":
                nested += [(extra, other) for other in others]
            else:
                found[extra].add(name)
        for _ in nested:
            for extra, other in nested:
                found[extra] |= found[other]
        return found


def requirement_of(line: str) -> tuple[str, tuple[str, ...], str]:
    """(distribution, its extras, the extra of ours that asks for it or `""`) of a line `Requires-Dist`."""
    match = re.match(r"([\w.-]+)(?:\[([^\]]*)\])?", line)
    assert match is not None, line
    extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
    others = tuple(name.strip() for name in (match[2] or "").split(",") if name.strip())
    return normal_name(match[1]), others, extra[1] if extra else ""


def normal_name(name: str) -> str:
    """The name of a distribution as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def module_of(entry: str) -> str:
    """The import name of a source file's path."""
    return entry.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def imports_of(text: str) -> dict[str, int]:
    """Top-level names that a module imports, wherever it does so, and the first line of each, counted from 1."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(text)):
        for name in _imported(node):
            line = getattr(node, "lineno", 0)
            found[name] = min(line, found.get(name, line))
    return found


def _imported(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (name.name.partition(".")[0] for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            yield module.partition(".")[0]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[argument, *_]) if name in BY_NAME:
            if top := _beginning(argument).partition(".")[0]:
                yield top


def _beginning(text: ast.expr) -> str:
    """What an expression of a text begins with; `""` where that is not written down."""
    match text:
        case ast.Constant(value=str(value)) | ast.JoinedStr(values=[ast.Constant(value=str(value)), *_]):
            return value
        case _:
            return ""


def foreign_imports(imports: Mapping[str, Mapping[str, int]], known: Iterable[str]) -> list[str]:
    """`path:line: name` of each import that is neither of the standard library nor known.

    imports: by path, of `imports_of`.
    """
    allowed = {*known, *sys.stdlib_module_names}
    return [
        f"{path}:{line}: {name}"
        for path, found in imports.items()
        for name, line in sorted(found.items())
        if name not in allowed
    ]
