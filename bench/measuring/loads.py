"""The records of a run: as columns for our clients, and as encoded batches for the floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorumlog.records import NO_PRODUCER, NO_SEQUENCE

COLUMNS_BYTES = 4 << 20  # values per RecordBatch that an application sends
BATCH_BYTES = 512 << 10  # the producer's default batch_size; one message of the floor
START_MS = 1_700_000_000_000
SEED = 4711


@dataclass(frozen=True, slots=True)
class Load:
    """columns: RecordBatches with the one column `value`. messages: the same records as encoded batches."""

    record_bytes: int
    records: int
    columns: list[Any]
    messages: list[bytes]

    @property
    def name(self) -> str:
        return f"{self.record_bytes >> 10} KiB" if self.record_bytes >= 1024 else f"{self.record_bytes} B"

    def values(self, count: int) -> list[bytes]:
        """The first `count` records as single values."""
        found: list[bytes] = []
        for batch in self.columns:
            found += batch.column(0)[: count - len(found)].to_pylist()
        return found


def make_load(record_bytes: int, total_bytes: int) -> Load:
    """About `total_bytes` of incompressible values."""
    import pyarrow as pa

    from quorumlog.records.columnar import lay_out

    rows = COLUMNS_BYTES // record_bytes
    count = max(1, total_bytes // (rows * record_bytes))
    rng = np.random.default_rng(SEED)
    offsets = pa.py_buffer(np.arange(0, (rows + 1) * record_bytes, record_bytes, dtype=np.int32).tobytes())
    columns, messages = [], []
    for _ in range(count):
        column = pa.Array.from_buffers(pa.binary(), rows, [None, offsets, pa.py_buffer(rng.bytes(rows * record_bytes))])
        columns.append(pa.RecordBatch.from_arrays([column], ["value"]))
        batches = lay_out(pa.nulls(rows, pa.binary()), column, np.full(rows, START_MS), max_batch_bytes=BATCH_BYTES)
        messages += [bytes(batch.seal(NO_PRODUCER, -1, NO_SEQUENCE, leader_epoch=0)) for batch in batches]
    return Load(record_bytes, rows * count, columns, messages)
