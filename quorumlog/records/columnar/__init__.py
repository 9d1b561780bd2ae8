"""Arrow columns to record batches and back. Needs the extra `[arrow]`; a node never imports it.

It produces the same bytes as `quorumlog.records.rowwise.plain`, the oracle of its tests. It has two forms (`form.py`):
vectors of numpy and Arrow, about four times as fast as the plain codec, and kernels compiled with Numba, about twenty
times.
"""

from __future__ import annotations

from quorumlog.records.columnar.arrow import NO_KEY
from quorumlog.records.columnar.decode import SCHEMA, SCHEMA_WITH_HEADERS, SIZE, decode_columns
from quorumlog.records.columnar.encode import DEFAULT_MAX_BATCH_BYTES, lay_out
from quorumlog.records.columnar.partition import partition_keys

__all__ = [
    "DEFAULT_MAX_BATCH_BYTES",
    "NO_KEY",
    "SCHEMA",
    "SCHEMA_WITH_HEADERS",
    "SIZE",
    "decode_columns",
    "lay_out",
    "partition_keys",
]
