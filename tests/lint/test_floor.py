"""The floor of the benchmarks stays what it claims to be: short, and with nothing of the product in it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

FLOOR = Path(__file__).resolve().parents[2] / "bench" / "floor.py"
MAX_LINES = 200
ALLOWED = {"grpc", "google_crc32c"} | set(sys.stdlib_module_names)


def test_the_floor_is_short() -> None:
    assert len(FLOOR.read_text().splitlines()) <= MAX_LINES


def test_the_floor_imports_nothing_of_ours() -> None:
    imported: list[str] = []
    for node in ast.walk(ast.parse(FLOOR.read_text())):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported.append(node.module or "")
    assert [name for name in imported if name.partition(".")[0] not in ALLOWED] == []
