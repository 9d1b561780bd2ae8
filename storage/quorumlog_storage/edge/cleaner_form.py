"""Which form of the work with keys a round takes (`quorumlog_storage/cleaning/keys.py`): the plain one from the first
record on, the compiled one once it pays.

The compiled form is about ten times as fast. But importing Numba and loading the kernels from its cache takes as long
as the plain form takes for some hundred thousand records, and compiling them, once for a machine, as long as for two
million. A process changes over at the first round with which the records that it has seen would have paid for that. So
a node with small compacted topics never imports Numba, and no round takes more than about twice its best time.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from quorumlog_storage.cleaning.keys import Keys, KeysSpec, PlainKeys
from quorumlog_storage.cleaning.marks import Marks
from quorumlog_storage.cleaning.spec import RoundSpec

ROWS_BEFORE_LOADING = 200_000  # 0.5 s at about 2.5 us a record
ROWS_BEFORE_COMPILING = 2_000_000  # 4 s
LEAST_RECORD_BYTES = 32  # about: compaction leaves gaps, so there may be far fewer records than offsets
_KERNELS = "quorumlog_storage.cleaning.key_kernels"


class KeyForms:
    """rows: that the rounds so far had at most. is_compiled: None until the rows decide; set, it is one form only."""

    def __init__(self, is_compiled: bool | None = None) -> None:
        self.rows = 0
        self.is_compiled = is_compiled
        self.is_installed = find_spec("numba") is not None

    def count(self, spec: RoundSpec) -> None:
        """A round comes."""
        dirty = [(base, size) for base, size in spec.segments if base >= spec.first_dirty] or list(spec.segments[-1:])
        size = sum(size for _, size in dirty)
        before, self.rows = self.rows, self.rows + min(spec.end_offset - spec.first_dirty, size // LEAST_RECORD_BYTES)
        if self.is_compiled is None and self.is_installed and self._pays_now(before):
            self.is_compiled = True

    def __call__(self, spec: KeysSpec, marks: Marks) -> Keys:
        if not self.is_compiled:
            return PlainKeys(spec, marks)
        from quorumlog_storage.cleaning.compiled_keys import CompiledKeys

        return CompiledKeys(spec, marks)

    def _pays_now(self, before: int) -> bool:
        """before: rows before this round. The cache is looked for once."""
        if self.rows >= ROWS_BEFORE_COMPILING:
            return True
        return before < ROWS_BEFORE_LOADING <= self.rows and is_cached()


def is_cached() -> bool:
    """If Numba's cache beside the source holds the kernels. A cache at another place is found by loading only."""
    found = find_spec(_KERNELS)
    assert found is not None and found.origin is not None
    return any((Path(found.origin).parent / "__pycache__").glob("key_kernels.*.nbi"))
