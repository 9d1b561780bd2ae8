"""The floor of the benchmarks stays what it claims to be: short, and with nothing of the product in it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "floor"
FLOORS = ("floor.py", "lane.py")
MAX_LINES = 200
ALLOWED = {"grpc", "google_crc32c"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize("name", FLOORS)
def test_the_floor_is_short(name: str) -> None:
    assert len((BENCH / name).read_text().splitlines()) <= MAX_LINES


@pytest.mark.parametrize("name", FLOORS)
def test_the_floor_imports_nothing_of_ours(name: str) -> None:
    imported: list[str] = []
    for node in ast.walk(ast.parse((BENCH / name).read_text())):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported.append(node.module or "")
    others = [module for module in imported if module.partition(".")[0] not in ALLOWED]
    assert [module for module in others if module != "bench.floor.floor"] == []
