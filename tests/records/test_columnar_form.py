"""A process decodes with vectors at first, and with compiled kernels once they pay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from quorumlog.records.columnar import form
from quorumlog.records.columnar.form import ROWS_BEFORE_COMPILING, ROWS_BEFORE_LOADING, Form

READ_A_FEW = """
import sys
from quorumlog.records import Record, encode_batch
from quorumlog.records.columnar import decode_columns, lay_out, partition_keys
import pyarrow as pa
rows = [Record(i, 1, b"k", b"v") for i in range(1000)]
assert decode_columns(encode_batch(rows), from_offset=0, to_offset=1000).num_rows == 1000
assert sum(batch.count for batch in lay_out(None, pa.array([b"v"] * 1000), 1)) == 1000
assert len(partition_keys(pa.array([b"k"] * 1000), 3)) == 1000
print("numba" in sys.modules)
"""


def new_form() -> Form:
    return Form(vectors="decode_vectors", kernels="decode_kernels")


def used(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def cache(monkeypatch: pytest.MonkeyPatch, folder: Path, *, filled: bool) -> None:
    monkeypatch.setattr(form, "__file__", str(folder / "form.py"))
    (folder / "__pycache__").mkdir()
    if filled:
        (folder / "__pycache__" / "decode_kernels.scan-1.py311.nbi").touch()


def test_a_short_read_imports_no_compiler() -> None:
    run = subprocess.run([sys.executable, "-c", READ_A_FEW], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_kernels_that_are_cached_are_loaded_once_they_pay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache(monkeypatch, tmp_path, filled=True)
    choice = new_form()
    assert used(choice(ROWS_BEFORE_LOADING - 1)) == "decode_vectors"
    assert used(choice(1)) == "decode_kernels"


def test_kernels_are_compiled_only_once_that_pays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache(monkeypatch, tmp_path, filled=False)
    choice = new_form()
    assert used(choice(ROWS_BEFORE_COMPILING - 1)) == "decode_vectors"
    assert used(choice(1)) == "decode_kernels"


@pytest.mark.parametrize("compiled", [True, False])
def test_a_form_that_was_chosen_stays(compiled: bool) -> None:
    choice = new_form()
    choice.compiled = compiled
    for rows in (0, ROWS_BEFORE_COMPILING):
        assert used(choice(rows)) == ("decode_kernels" if compiled else "decode_vectors")
