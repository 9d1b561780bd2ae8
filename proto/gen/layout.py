"""The layout of generated modules: heading, docstrings, imports."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from schema import File, TypeName

WIDTH = 120


def heading(doc: str, source: str) -> str:
    """The module docstring, and the import that every module has."""
    origin = f"Written by `./dev proto` from proto/{source}; edit that instead."
    return docstring("\n\n".join(filter(None, (doc, origin)))) + "\n\nfrom __future__ import annotations\n"


def docstring(text: str, indent: str = "") -> str:
    """`text` as a docstring wrapped to WIDTH, without trailing blanks; "" for no text."""
    if not text:
        return ""
    text = text.expandtabs().strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = [short for line in text.splitlines() for short in _fit(line, WIDTH - len(indent) - 6)]
    opening = '""" ' if text.startswith('"') else '"""'  # these blanks are ruff's
    gap = " " if text.endswith('"') else ""
    closing = f'{gap}"""' if len(lines) == 1 else '\n"""'
    return textwrap.indent(opening + "\n".join(lines) + closing, indent) + "\n"


def _fit(line: str, width: int) -> list[str]:
    margin = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False) or [""]


def imports(root_package: str, names: Iterable[TypeName], *prefixes: str) -> str:
    """`from <package>.<module> import <prefix><Name>` for each name and prefix, one line per module."""
    by_module: dict[str, list[str]] = {}
    for name in names:
        by_module.setdefault(name.module, []).extend(prefix + name.python for prefix in prefixes or ("",))
    lines = [
        f"from {root_package}.{module} import {', '.join(sorted(dict.fromkeys(by_module[module])))}\n"
        for module in sorted(by_module)
    ]
    return "".join(lines)


def used_elsewhere(file: File) -> list[TypeName]:
    """The types of other files that this file's fields use."""
    named = (field.foreign for message in file.messages for field in message.fields)
    return [name for name in named if name is not None and name.module != file.stem]
