"""A node's memory and start time depend on modules that it must not import."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "pyarrow", "numba", "pandas", "lz4", "zstandard", "cramjam", "grpc", "asyncio")


@pytest.mark.parametrize("module", ["quorumlog.records", "quorumlog.records.control"])
def test_no_heavy_module_is_imported(module: str) -> None:
    script = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
