"""Which form of the codec does the work: numpy's vectors from the first row on, compiled kernels once they pay.

Kernels are several times as fast. But importing Numba and loading them from its cache takes as long as vectors take for
a million rows or two, and compiling them as long as for ten million. A process changes to kernels once the rows that it
has seen would have paid for that, so it never takes more than about twice the time of the better choice, and a short
read never waits for a compiler.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PACKAGE = __name__.rpartition(".")[0]
ROWS_BEFORE_LOADING = 1_500_000  # 0.4 s at about 250 ns a row
ROWS_BEFORE_COMPILING = 12_000_000  # 3 s


@dataclass(slots=True)
class Form:
    """One pair of modules with the same functions. rows: that the vectors have been asked for.

    compiled: None until the rows decide; set it to have one form only, as tests and benchmarks do.
    """

    vectors: str
    kernels: str
    rows: int = 0
    compiled: bool | None = None

    def __call__(self, rows: int) -> Any:
        """The module to use for that many rows more."""
        before, self.rows = self.rows, self.rows + rows
        if self.compiled is None and self._pays_now(before):
            self.compiled = True
        return importlib.import_module(f"{_PACKAGE}.{self.kernels if self.compiled else self.vectors}")

    def _pays_now(self, before: int) -> bool:
        """before: rows before this call. The cache is looked for once: a folder is not read again at every call."""
        if self.rows >= ROWS_BEFORE_COMPILING:
            return True
        return before < ROWS_BEFORE_LOADING <= self.rows and self._is_cached()

    def _is_cached(self) -> bool:
        """True if Numba's cache beside the source holds this module. A cache at another place is found by loading."""
        return any((Path(__file__).parent / "__pycache__").glob(f"{self.kernels}.*.nbi"))


decoder = Form(vectors="decode_vectors", kernels="decode_kernels")
encoder = Form(vectors="encode_vectors", kernels="encode_kernels")
partitioner = Form(vectors="partition_vectors", kernels="partition_kernels")
